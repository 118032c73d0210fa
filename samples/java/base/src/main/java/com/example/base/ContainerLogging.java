package com.example.base;

import java.net.URL;
import org.springframework.boot.context.event.ApplicationEnvironmentPreparedEvent;
import org.springframework.boot.context.logging.LoggingApplicationListener;
import org.springframework.context.ApplicationListener;
import org.springframework.core.Ordered;

/**
 * The container of SOFAArk brings a Logback of its own, which sees neither the class path of the base nor the settings of Spring.
 * This lets it find the logback.xml of the base. A -Dlogback.configurationFile of yours goes before.
 */
class ContainerLogging implements ApplicationListener<ApplicationEnvironmentPreparedEvent>, Ordered {

    private static final String PROPERTY = "logback.configurationFile";

    @Override
    public void onApplicationEvent(ApplicationEnvironmentPreparedEvent event) {
        URL configuration = getClass().getResource("/logback.xml");
        if (configuration != null && System.getProperty(PROPERTY) == null) {
            System.setProperty(PROPERTY, configuration.toString());
        }
    }

    /** After Spring's own, which warns of the property, and before the container starts with the same event. */
    @Override
    public int getOrder() {
        return LoggingApplicationListener.DEFAULT_ORDER + 1;
    }
}
