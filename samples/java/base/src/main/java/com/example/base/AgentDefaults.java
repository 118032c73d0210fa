package com.example.base;

/** What SOFAArk and its libraries read as system properties before Spring is there. A -D of yours goes before. */
final class AgentDefaults {

    private AgentDefaults() {
    }

    static void set() {
        // Off: it listens on all addresses, port 1234, and lets anybody install code.
        setDefault("sofa.ark.telnet.server.enable", "false");
        // SOFAArk and arklet log like the rest of the app, not into files below the home of the user.
        setDefault("sofa.middleware.log.disable", "true");
        // arklet finds out its health by native code, which JNA otherwise unpacks below the home of the user.
        setDefault("jna.tmpdir", System.getProperty("java.io.tmpdir"));
        // arklet executes a command that came over HTTP on the thread that reads it, and has two for each CPU: what came
        // to the same thread waits until an install has ended. It holds for all of Netty in this JVM.
        int threads = Math.max(16, 2 * Runtime.getRuntime().availableProcessors());
        setDefault("io.netty.eventLoopThreads", Integer.toString(threads));
        // In ms. arklet downloads jars without a limit of its own: a server that hangs would hold the install for ever.
        setDefault("sun.net.client.defaultConnectTimeout", "10000");
        setDefault("sun.net.client.defaultReadTimeout", "30000");
    }

    private static void setDefault(String name, String value) {
        if (System.getProperty(name) == null) {
            System.setProperty(name, value);
        }
    }
}
