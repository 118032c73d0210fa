package com.example.quote;

import org.springframework.beans.factory.annotation.Value;
import org.springframework.http.MediaType;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RestController;

@RestController
class QuoteController {

    private final QuoteProperties properties;
    private final String discount;

    QuoteController(QuoteProperties properties, @Value("${quote.discount}") String discount) {
        this.properties = properties;
        this.discount = discount;
    }

    @GetMapping(path = "/currency", produces = MediaType.TEXT_PLAIN_VALUE)
    String currency() {
        return properties.currency();
    }

    @GetMapping(path = "/discount", produces = MediaType.TEXT_PLAIN_VALUE)
    String discount() {
        return discount;
    }
}
