package com.example.price;

import com.example.facade.PriceService;
import org.springframework.beans.factory.annotation.Value;
import org.springframework.stereotype.Service;

@Service
class VersionedPriceService implements PriceService {

    private final String version;

    VersionedPriceService(@Value("${price.version}") String version) {
        this.version = version;
    }

    @Override
    public String version() {
        return version;
    }
}
