package com.example.base;

import java.net.URI;
import java.util.function.Supplier;
import java.util.regex.Pattern;
import org.springframework.boot.context.properties.ConfigurationProperties;
import org.springframework.boot.context.properties.bind.DefaultValue;

/**
 * All settings of the base, from whatever Spring reads: {@code -Dbase.identity=…}, {@code --base.identity=…},
 * {@code BASE_IDENTITY}, application.properties. A blank one counts as not set.
 *
 * @param identity unique in an environment; names the Node and the topics. Default: the host name
 * @param name what modules select. Default: base
 * @param version of the base. Default: that of the jar
 * @param clusterName name of a group of bases. Default: default
 * @param env ENV of the controller. Default: dev
 * @param localIp where the controller reaches arklet. Default: an address of this machine that is no loopback
 */
@ConfigurationProperties("base")
public record BaseProperties(
        String identity,
        String name,
        String version,
        String clusterName,
        String env,
        String localIp,
        @DefaultValue Controller controller,
        @DefaultValue Mqtt mqtt) {

    // What the controller takes: it makes the name of a Node of it.
    private static final Pattern IDENTITY =
            Pattern.compile("[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*");
    private static final int MAX_IDENTITY_LENGTH = 57;

    private static final Pattern HEADER_VALUE = Pattern.compile("[!-~]+");
    private static final Pattern ENV = Pattern.compile("[A-Za-z0-9]([-A-Za-z0-9._]*[A-Za-z0-9])?");

    public BaseProperties {
        identity = valueOr(identity, () -> LocalHost.name().orElse(""));
        name = valueOr(name, () -> "base");
        version = valueOr(version, BaseProperties::versionOfJar);
        clusterName = valueOr(clusterName, () -> "default");
        env = valueOr(env, () -> "dev");
        localIp = valueOr(localIp, LocalHost::address);
        check(IDENTITY.matcher(identity).matches() && identity.length() <= MAX_IDENTITY_LENGTH,
                "base.identity", identity, "at most 57 of a-z, 0-9, '-' and '.', letters or digits at both ends");
        check(ENV.matcher(env).matches(), "base.env", env, "letters, digits, '-', '_' and '.': ENV of the controller");
    }

    /**
     * @param url where heartbeats go, without /heartbeat; not set: none are sent
     * @param token HTTP_TUNNEL_TOKEN of the controller, where it has one
     */
    public record Controller(URI url, String token) {

        public Controller {
            // A Secret that was made from a file ends with a line end.
            token = isBlank(token) ? null : token.strip();
            // Else the request for a heartbeat would fail, and say the token.
            check(token == null || HEADER_VALUE.matcher(token).matches(),
                    "base.controller.token", "(not shown)", "of ASCII characters without spaces");
            check(url == null || url.toString().matches("https?://.+"),
                    "base.controller.url", url, "an address such as http://module-controller.koupleless-system:7777");
        }

        /** Without the token. */
        @Override
        public String toString() {
            return "Controller[url=" + url + "]";
        }
    }

    /**
     * @param broker tcp://host:1883, or ssl://host:8883 for TLS; not set: no MQTT
     * @param clientPrefix begin of the client id, which is {prefix}@@@{identity}. Default: koupleless
     */
    public record Mqtt(
            String broker,
            String username,
            String password,
            String clientPrefix) {

        public Mqtt {
            broker = valueOr(broker, () -> null);
            username = valueOr(username, () -> null);
            password = valueOr(password, () -> null);
            clientPrefix = valueOr(clientPrefix, () -> "koupleless");
            check(broker == null || broker.matches("(tcp|ssl)://.+"),
                    "base.mqtt.broker", broker, "an address such as tcp://broker:1883 or ssl://broker:8883");
        }

        /** Without the password. */
        @Override
        public String toString() {
            return "Mqtt[broker=" + broker + ", username=" + username + ", clientPrefix=" + clientPrefix + "]";
        }
    }

    /** Of the manifest, where spring-boot-starter-parent has Maven put it. An IDE starts a base without a jar. */
    private static String versionOfJar() {
        return valueOr(BaseProperties.class.getPackage().getImplementationVersion(), () -> "unknown");
    }

    private static String valueOr(String value, Supplier<String> otherwise) {
        return isBlank(value) ? otherwise.get() : value;
    }

    private static boolean isBlank(String value) {
        return value == null || value.isBlank();
    }

    private static void check(boolean isValid, String property, Object value, String rule) {
        if (!isValid) {
            throw new IllegalArgumentException(property + " is '" + value + "', but has to be " + rule);
        }
    }
}
