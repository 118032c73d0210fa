package com.example.faulty;

import java.io.IOException;
import java.io.InputStream;
import java.lang.management.ManagementFactory;
import java.lang.management.MemoryPoolMXBean;
import java.util.ArrayList;
import java.util.List;

/** Fills metaspace with classes that stay until the module is uninstalled. */
final class Ballast {

    private static final List<Class<?>> STONES = new ArrayList<>();

    private Ballast() {
    }

    static void load(long bytes) throws IOException {
        MemoryPoolMXBean metaspace = metaspace();
        long wanted = metaspace.getUsage().getUsed() + bytes;
        byte[] code = codeOfStone();
        while (metaspace.getUsage().getUsed() < wanted) {
            STONES.add(new StoneLoader().define(code));
        }
    }

    private static MemoryPoolMXBean metaspace() {
        return ManagementFactory.getMemoryPoolMXBeans().stream()
                .filter(pool -> pool.getName().equals("Metaspace"))
                .findFirst()
                .orElseThrow();
    }

    private static byte[] codeOfStone() throws IOException {
        try (InputStream code = Ballast.class.getResourceAsStream("Ballast$Stone.class")) {
            return code.readAllBytes();
        }
    }

    private static final class Stone {
    }

    /** A loader can define a class of a name once only. */
    private static final class StoneLoader extends ClassLoader {

        Class<?> define(byte[] code) {
            return defineClass(null, code, 0, code.length);
        }
    }
}
