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
