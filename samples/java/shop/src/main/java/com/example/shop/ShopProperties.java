package com.example.shop;

import org.springframework.boot.context.properties.ConfigurationProperties;

/** Settings of the shop, from application.properties or from the {@code args} of the Pod. */
@ConfigurationProperties("shop")
record ShopProperties(String color) {
}
