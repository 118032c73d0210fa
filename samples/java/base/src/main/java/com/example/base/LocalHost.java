package com.example.base;

import java.io.UncheckedIOException;
import java.net.Inet4Address;
import java.net.InetAddress;
import java.net.NetworkInterface;
import java.net.SocketException;
import java.net.UnknownHostException;
import java.util.Comparator;
import java.util.Locale;
import java.util.Optional;

/** What this machine says of itself, where nobody has configured it. */
final class LocalHost {

    private LocalHost() {
    }

    /** Empty where the host name has no address. */
    static Optional<String> name() {
        try {
            return Optional.of(InetAddress.getLocalHost().getHostName().toLowerCase(Locale.ROOT));
        } catch (UnknownHostException e) {
            return Optional.empty();
        }
    }

    /**
     * An address that others can reach, IPv4 before IPv6. Of several that of the oldest interface: Java begins with the
     * newest, which is a bridge of Docker where there is one.
     */
    static String address() {
        try {
            return NetworkInterface.networkInterfaces()
                    .filter(LocalHost::isUp)
                    .sorted(Comparator.comparing(NetworkInterface::getIndex))
                    .flatMap(NetworkInterface::inetAddresses)
                    .filter(address -> !address.isLoopbackAddress() && !address.isLinkLocalAddress())
                    .min(Comparator.comparing(address -> address instanceof Inet4Address ? 0 : 1))
                    .map(LocalHost::withoutScope)
                    .orElseThrow(() -> new IllegalStateException("no address but loopback; set base.local-ip"));
        } catch (SocketException e) {
            throw new UncheckedIOException("the addresses of this machine cannot be read; set base.local-ip", e);
        }
    }

    /** False for one that has gone meanwhile. */
    private static boolean isUp(NetworkInterface networkInterface) {
        try {
            return networkInterface.isUp();
        } catch (SocketException e) {
            return false;
        }
    }

    /** fd00::1%eth0 means nothing to others. */
    private static String withoutScope(InetAddress address) {
        return address.getHostAddress().replaceFirst("%.*", "");
    }
}
