package com.example.base.mqtt;

import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.atomic.AtomicInteger;
import org.springframework.stereotype.Component;

/** Threads for commands: Paho's own must not wait for them, and questions not for installs. */
@Component
class CommandExecutor implements AutoCloseable {

    /** Further ones wait. */
    private static final int OPERATIONS_AT_A_TIME = 8;

    private final ExecutorService operations = Executors.newFixedThreadPool(OPERATIONS_AT_A_TIME, named("operation"));
    private final ExecutorService questions = Executors.newSingleThreadExecutor(named("question"));

    void operation(Runnable command) {
        operations.execute(command);
    }

    void question(Runnable command) {
        questions.execute(command);
    }

    @Override
    public void close() {
        operations.shutdownNow();
        questions.shutdownNow();
    }

    private static ThreadFactory named(String name) {
        AtomicInteger count = new AtomicInteger();
        return task -> {
            Thread thread = new Thread(task, "arklet-" + name + "-" + count.incrementAndGet());
            // SOFAArk takes a thread with another class loader for one of a module.
            thread.setContextClassLoader(CommandExecutor.class.getClassLoader());
            thread.setDaemon(true);
            return thread;
        };
    }
}
