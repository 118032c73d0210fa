package com.example.facade;

/** What the base calls and the module price offers. The base loads it, so that both mean the same class. */
public interface PriceService {

    /** The version of the module that answers. */
    String version();
}
