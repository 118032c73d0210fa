package com.example.base.mqtt;

import com.example.base.BaseDescription;
import com.example.base.BaseProperties;
import com.example.base.FaultLog;
import com.example.base.Heart.State;
import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.core.type.TypeReference;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.time.Duration;
import java.util.Map;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import org.eclipse.paho.client.mqttv3.IMqttDeliveryToken;
import org.eclipse.paho.client.mqttv3.MqttCallback;
import org.eclipse.paho.client.mqttv3.MqttClient;
import org.eclipse.paho.client.mqttv3.MqttConnectOptions;
import org.eclipse.paho.client.mqttv3.MqttException;
import org.eclipse.paho.client.mqttv3.MqttMessage;
import org.eclipse.paho.client.mqttv3.persist.MemoryPersistence;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.springframework.boot.autoconfigure.condition.ConditionalOnExpression;
import org.springframework.boot.context.event.ApplicationReadyEvent;
import org.springframework.context.event.ContextClosedEvent;
import org.springframework.context.event.EventListener;
import org.springframework.stereotype.Component;

/**
 * Sends heartbeats to the controller over MQTT, and receives its commands. The timer's thread alone connects
 * and beats; Paho's thread only hands commands over.
 */
@Component
@ConditionalOnExpression("!environment.getProperty('base.mqtt.broker', '').isBlank()")
class MqttTunnel implements MqttCallback {

    private static final Logger logger = LoggerFactory.getLogger(MqttTunnel.class);
    private static final TypeReference<Map<String, Object>> PARAMETERS = new TypeReference<>() {
    };

    private static final Duration HEART_PERIOD = Duration.ofSeconds(10);
    /** Paho's own reconnect is not for the first connect, and may wait for two minutes; a base is dead after one. */
    private static final Duration RECONNECT_PERIOD = Duration.ofSeconds(2);
    private static final Duration TIMEOUT = Duration.ofSeconds(5);
    private static final int AT_LEAST_ONCE = 1;

    private final BaseDescription description;
    private final BaseProperties.Mqtt properties;
    private final String clientId;
    private final Topics topics;
    private final ArkletCommands commands;
    private final CommandExecutor executor;
    private final ObjectMapper json;
    private final FaultLog faults;

    private final ScheduledExecutorService timer =
            Executors.newSingleThreadScheduledExecutor(task -> new Thread(task, "mqtt-tunnel"));
    private volatile MqttClient client;
    private boolean hasQueriedBaseline;

    MqttTunnel(BaseDescription description, BaseProperties properties, ArkletCommands commands,
            CommandExecutor executor, ObjectMapper json) {
        this.description = description;
        this.properties = properties.mqtt();
        this.clientId = properties.mqtt().clientPrefix() + "@@@" + properties.identity();
        this.topics = Topics.of(properties);
        this.commands = commands;
        this.executor = executor;
        this.json = json;
        this.faults = new FaultLog(logger, "the link to " + properties.mqtt().broker() + " is up");
    }

    @EventListener(ApplicationReadyEvent.class)
    void start() {
        long pauseMs = RECONNECT_PERIOD.toMillis();
        timer.scheduleWithFixedDelay(faults.guard(this::keepConnected), 0, pauseMs, TimeUnit.MILLISECONDS);
        long periodMs = HEART_PERIOD.toMillis();
        timer.scheduleAtFixedRate(faults.guard(this::beat), periodMs, periodMs, TimeUnit.MILLISECONDS);
    }

    /** Comes first in the shutdown, so that the controller looks away at once. */
    @EventListener(ContextClosedEvent.class)
    void stop() throws InterruptedException {
        timer.shutdown();
        timer.awaitTermination(TIMEOUT.toMillis(), TimeUnit.MILLISECONDS);
        publish("heart", description.heart(State.DEACTIVATED));
        discardClient();
    }

    private void keepConnected() {
        if (isConnected()) {
            return;
        }
        discardClient();
        try {
            connect();
            faults.succeeded();
        } catch (Throwable e) {
            // It may be connected and not subscribed. Throwable: an Error must not leave it so either.
            discardClient();
            faults.failed("no link to " + properties.broker() + ": " + e);
        }
    }

    /** With a client of its own for each connection, as one that has failed half-way cannot be used again. */
    private void connect() throws MqttException {
        // In memory: Paho would else write files into the working directory.
        MqttClient fresh = new MqttClient(properties.broker(), clientId, new MemoryPersistence());
        fresh.setTimeToWait(TIMEOUT.toMillis());
        fresh.setCallback(this);
        client = fresh;
        fresh.connect(options());
        fresh.subscribe(topics.commands(), AT_LEAST_ONCE);
        hasQueriedBaseline = hasQueriedBaseline || publish("queryBaseline", description.metadata());
        publish("heart", description.heart(State.ACTIVATED));
    }

    private MqttConnectOptions options() {
        MqttConnectOptions options = new MqttConnectOptions();
        options.setCleanSession(true);
        options.setConnectionTimeout((int) TIMEOUT.toSeconds());
        options.setKeepAliveInterval((int) HEART_PERIOD.toSeconds());
        options.setMaxInflight(100);
        if (properties.username() != null) {
            options.setUserName(properties.username());
        }
        if (properties.password() != null) {
            options.setPassword(properties.password().toCharArray());
        }
        return options;
    }

    private void beat() {
        if (isConnected()) {
            publish("heart", description.heart(State.ACTIVATED));
        }
    }

    @Override
    public void messageArrived(String topic, MqttMessage message) {
        String command = topics.commandOf(topic);
        // The broker hands a retained command out again at each connect: a module that is long gone would come back.
        if (message.isRetained()) {
            logger.warn("ignored {}, because it is retained", topic);
        } else if (commands.isOperation(command)) {
            executor.operation(() -> answer(command, message));
        } else if (commands.isQuestion(command)) {
            executor.question(() -> answer(command, message));
        }
    }

    private void answer(String command, MqttMessage message) {
        try {
            Answer answer = commands.execute(command, json.readValue(message.getPayload(), PARAMETERS));
            publish(answer.type(), answer.data());
        } catch (IOException | RuntimeException e) {
            logger.warn("no answer to {}: {}", command, e.toString());
        }
    }

    /** False: it is lost. The controller finds out by the next heart or list. */
    private boolean publish(String type, Object data) {
        MqttClient current = client;
        if (current == null) {
            return false;
        }
        try {
            current.publish(topics.published(type), payloadOf(data), AT_LEAST_ONCE, false);
            return true;
        } catch (MqttException | JsonProcessingException e) {
            logger.warn("{} not published: {}", type, e.toString());
            return false;
        }
    }

    private byte[] payloadOf(Object data) throws JsonProcessingException {
        return json.writeValueAsBytes(new Envelope(System.currentTimeMillis(), data));
    }

    private record Envelope(long publishTimestamp, Object data) {
    }

    @Override
    public void connectionLost(Throwable cause) {
        faults.failed("lost the link to " + properties.broker() + ": " + cause);
    }

    @Override
    public void deliveryComplete(IMqttDeliveryToken token) {
        // Nobody waits for it here.
    }

    private boolean isConnected() {
        return client != null && client.isConnected();
    }

    private void discardClient() {
        MqttClient old = client;
        client = null;
        if (old == null) {
            return;
        }
        try {
            old.disconnectForcibly(0, 1_000);
            old.close(true);
        } catch (MqttException e) {
            logger.debug("a client was not closed", e);
        }
    }
}
