package com.example.base;

import java.util.Objects;
import org.slf4j.Logger;

/** Says a fault once, and once that it is over, however often it is tried in between. */
public final class FaultLog {

    private static final String NOT_TRIED = "not tried";

    private final Logger logger;
    private final String success;
    private String fault = NOT_TRIED;

    public FaultLog(Logger logger, String success) {
        this.logger = logger;
        this.success = success;
    }

    /**
     * For a timer, which would end without a word with a task that throws. Throwable: a full metaspace as well has to
     * be logged, and may be over at the next turn.
     */
    public Runnable guard(Runnable task) {
        return () -> {
            try {
                task.run();
            } catch (Throwable e) {
                tryToSay(e);
            }
        };
    }

    private void tryToSay(Throwable e) {
        try {
            failed(Thread.currentThread().getName() + " failed: " + e);
        } catch (Throwable again) {
            // No memory even for that. The next turn tries again.
        }
    }

    public synchronized void succeeded() {
        if (fault != null) {
            logger.info(success);
        }
        fault = null;
    }

    public synchronized void failed(String message) {
        if (!Objects.equals(fault, message)) {
            logger.warn(message);
        }
        fault = message;
    }
}
