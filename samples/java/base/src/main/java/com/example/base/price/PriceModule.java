package com.example.base.price;

import com.alipay.sofa.ark.api.ArkClient;
import com.alipay.sofa.ark.spi.model.Biz;
import com.alipay.sofa.koupleless.common.BizRuntimeContextRegistry;
import com.alipay.sofa.koupleless.common.model.ApplicationContextHolder;
import com.example.facade.PriceService;
import java.time.Duration;
import java.util.Optional;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.springframework.stereotype.Component;

/**
 * Finds the service of the active version of the module price. Ask for each call: a service that is kept keeps an old
 * version in memory and goes on calling it.
 *
 * <p>The finder of Koupleless (SpringServiceFinder) is not used here. Its proxies look for the version again when they
 * are called, when it may be gone; what is returned here can be called even then. They also call by reflection, which
 * takes public classes only and wraps exceptions.
 */
@Component
class PriceModule {

    private static final Logger logger = LoggerFactory.getLogger(PriceModule.class);

    private static final String NAME = "price";
    private static final int ATTEMPTS = 10;
    private static final Duration PAUSE = Duration.ofMillis(10);

    /** Empty where no version is active. */
    Optional<PriceService> service() {
        for (int attempt = 1; attempt <= ATTEMPTS && isInstalled(); attempt++) {
            Optional<PriceService> service = lookUp();
            if (service.isPresent()) {
                return service;
            }
            pause();
        }
        return Optional.empty();
    }

    private static boolean isInstalled() {
        return !ArkClient.getBizManagerService().getBiz(NAME).isEmpty();
    }

    /**
     * Finds nothing for a moment when versions are switched: SOFAArk deactivates the old one first and then activates
     * the new one. And the version that was active may be closed while we look into it.
     */
    private static Optional<PriceService> lookUp() {
        Biz active = ArkClient.getBizManagerService().getActiveBiz(NAME);
        if (active == null) {
            return Optional.empty();
        }
        try {
            ApplicationContextHolder<?> context =
                    BizRuntimeContextRegistry.getBizRuntimeContext(active).getApplicationContext();
            return Optional.of(context.getObject(PriceService.class));
        } catch (RuntimeException e) {
            logger.debug("{} was closed meanwhile", active.getIdentity(), e);
            return Optional.empty();
        }
    }

    private static void pause() {
        try {
            Thread.sleep(PAUSE.toMillis());
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }
}
