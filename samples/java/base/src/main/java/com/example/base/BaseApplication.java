package com.example.base;

import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.boot.context.properties.ConfigurationPropertiesScan;
import org.springframework.boot.logging.LoggingSystem;

@SpringBootApplication
@ConfigurationPropertiesScan
public class BaseApplication {

    public static void main(String[] args) {
        AgentDefaults.set();
        SpringApplication base = new SpringApplication(BaseApplication.class);
        base.addListeners(new ContainerLogging());
        base.addInitializers(ArkletPort::choose, context -> keepLogging());
        try {
            base.run(args);
        } catch (Throwable e) {
            // Spring has logged it. Threads of Tomcat and arklet would keep a base alive that does not work.
            // Not for an app with devtools or AOT: both end main by a throwable of their own.
            System.exit(1);
        }
    }

    /**
     * Once the logging of the base is set up, and before arklet listens: from here on Spring Boot apps in this JVM are
     * modules. Each would set up the logging of the whole JVM again.
     */
    private static void keepLogging() {
        System.setProperty(LoggingSystem.SYSTEM_PROPERTY, LoggingSystem.NONE);
    }
}
