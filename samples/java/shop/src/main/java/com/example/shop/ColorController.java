package com.example.shop;

import org.springframework.http.MediaType;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RestController;

@RestController
class ColorController {

    private final ShopProperties properties;

    ColorController(ShopProperties properties) {
        this.properties = properties;
    }

    @GetMapping(path = "/color", produces = MediaType.TEXT_PLAIN_VALUE)
    String color() {
        return properties.color();
    }
}
