package com.example.quote;

import org.springframework.boot.context.properties.ConfigurationProperties;

/** Settings of the quote, from the configuration server. */
@ConfigurationProperties("quote")
record QuoteProperties(String currency) {
}
