package com.example.base.price;

import com.example.facade.PriceService;
import org.springframework.http.HttpStatus;
import org.springframework.http.MediaType;
import org.springframework.http.ResponseEntity;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RestController;

/** A part of the base that needs a module. */
@RestController
class PriceController {

    private final PriceModule priceModule;

    PriceController(PriceModule priceModule) {
        this.priceModule = priceModule;
    }

    @GetMapping(path = "/price", produces = MediaType.TEXT_PLAIN_VALUE)
    ResponseEntity<String> price() {
        return priceModule.service()
                .map(PriceService::version)
                .map(ResponseEntity::ok)
                .orElseGet(() -> ResponseEntity.status(HttpStatus.SERVICE_UNAVAILABLE)
                        .body("no version of the module price is active on this base"));
    }
}
