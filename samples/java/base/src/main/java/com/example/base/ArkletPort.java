package com.example.base;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.ServerSocket;
import org.springframework.context.ConfigurableApplicationContext;

/** Where arklet listens for commands. Heartbeats tell it to the controller. */
public record ArkletPort(int number) {

    private static final String PROPERTY = "koupleless.arklet.http.port";

    /**
     * Decides the port before arklet starts, since arklet says nowhere which one it took. It reads the system property
     * once, when the context has been refreshed, and takes neither 0 nor anything from a file.
     */
    static void choose(ConfigurableApplicationContext context) {
        int wanted = context.getEnvironment().getRequiredProperty(PROPERTY, Integer.class);
        int port = wanted == 0 ? freePort() : wanted;
        System.setProperty(PROPERTY, Integer.toString(port));
        context.getBeanFactory().registerSingleton("arkletPort", new ArkletPort(port));
    }

    /** Another process may take it until arklet does. The base then ends, since arklet cannot listen. */
    private static int freePort() {
        try (ServerSocket socket = new ServerSocket(0)) {
            return socket.getLocalPort();
        } catch (IOException e) {
            throw new UncheckedIOException("no free port for arklet", e);
        }
    }
}
