package com.example.quote;

import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.boot.context.properties.ConfigurationPropertiesScan;

@SpringBootApplication
@ConfigurationPropertiesScan
public class QuoteApplication {

    /** The args name the configuration server. */
    public static void main(String[] args) {
        SpringApplication.run(QuoteApplication.class, args);
    }
}
