package com.example.faulty;

import com.alipay.sofa.koupleless.common.MainApplication;
import java.io.IOException;
import java.time.Duration;

/**
 * Fails or dawdles at its start, as its arguments say, to see what the Pod then says:
 * {@code --start-seconds=90} makes the start take that long, {@code --metaspace-mib=16} fills so much metaspace,
 * {@code --fail=<message>} throws; several: in this order.
 */
public final class FaultyModule {

    private FaultyModule() {
    }

    public static void main(String[] args) throws InterruptedException, IOException {
        // A module without Spring has to say so: without a context of any kind arklet cannot uninstall it.
        MainApplication.init();

        String startSeconds = valueOf("--start-seconds=", args);
        if (startSeconds != null) {
            Thread.sleep(Duration.ofSeconds(Long.parseLong(startSeconds)).toMillis());
        }
        String metaspaceMib = valueOf("--metaspace-mib=", args);
        if (metaspaceMib != null) {
            Ballast.load(Long.parseLong(metaspaceMib) << 20);
        }
        String failure = valueOf("--fail=", args);
        if (failure != null) {
            throw new IllegalStateException(failure);
        }
    }

    private static String valueOf(String prefix, String[] args) {
        for (String arg : args) {
            if (arg.startsWith(prefix)) {
                return arg.substring(prefix.length());
            }
        }
        return null;
    }
}
