package com.example.shop;

import org.springframework.beans.factory.annotation.Value;
import org.springframework.http.MediaType;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RestController;

@RestController
class VersionController {

    private final String version;

    VersionController(@Value("${shop.version}") String version) {
        this.version = version;
    }

    @GetMapping(path = "/version", produces = MediaType.TEXT_PLAIN_VALUE)
    String version() {
        return version;
    }
}
