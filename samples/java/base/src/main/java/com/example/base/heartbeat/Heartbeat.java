package com.example.base.heartbeat;

import com.example.base.BaseDescription;
import com.example.base.BaseProperties;
import com.example.base.FaultLog;
import com.example.base.Heart.State;
import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.springframework.boot.autoconfigure.condition.ConditionalOnExpression;
import org.springframework.boot.context.event.ApplicationReadyEvent;
import org.springframework.context.event.ContextClosedEvent;
import org.springframework.context.event.EventListener;
import org.springframework.stereotype.Component;

/** Sends heartbeats to the controller over HTTP: that this base runs, and the port of its arklet. */
@Component
@ConditionalOnExpression("!environment.getProperty('base.controller.url', '').isBlank()")
class Heartbeat {

    private static final Logger logger = LoggerFactory.getLogger(Heartbeat.class);

    /** The controller takes a base for unreachable that is silent for two of them. */
    private static final Duration PERIOD = Duration.ofSeconds(12);
    private static final Duration TIMEOUT = Duration.ofSeconds(5);

    private final BaseDescription description;
    private final ObjectMapper json;
    private final URI uri;
    private final String token;
    private final FaultLog faults;

    // HTTP/1.1, since the client would else ask for an upgrade to HTTP/2 with each request.
    private final HttpClient http =
            HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).connectTimeout(TIMEOUT).build();
    private final ScheduledExecutorService timer =
            Executors.newSingleThreadScheduledExecutor(task -> new Thread(task, "heartbeat"));
    private boolean isStarted;

    Heartbeat(BaseDescription description, BaseProperties properties, ObjectMapper json) {
        this.description = description;
        this.json = json;
        this.uri = URI.create(properties.controller().url().toString().replaceFirst("/*$", "/heartbeat"));
        this.token = properties.controller().token();
        this.faults = new FaultLog(logger, "the controller takes heartbeats at " + uri);
    }

    /** The base serves, and arklet listens: it has started when the context was refreshed, a moment before. */
    @EventListener(ApplicationReadyEvent.class)
    void start() {
        isStarted = true;
        Runnable beat = faults.guard(() -> post(State.ACTIVATED));
        timer.scheduleAtFixedRate(beat, 0, PERIOD.toMillis(), TimeUnit.MILLISECONDS);
    }

    /** Comes first in the shutdown, so that the controller looks away at once. */
    @EventListener(ContextClosedEvent.class)
    void stop() throws InterruptedException {
        timer.shutdown();
        timer.awaitTermination(TIMEOUT.toMillis(), TimeUnit.MILLISECONDS);
        if (isStarted) {
            post(State.DEACTIVATED);
        }
    }

    private void post(State state) {
        try {
            HttpResponse<String> response = send(requestOf(state));
            if (response.statusCode() == 200) {
                faults.succeeded();
            } else {
                faults.failed("heartbeat to " + uri + " refused: " + response.statusCode() + " " + response.body());
            }
        } catch (ExecutionException e) {
            faults.failed("heartbeat to " + uri + " failed: " + e.getCause());
        } catch (IOException | TimeoutException | RuntimeException e) {
            faults.failed("heartbeat to " + uri + " failed: " + e);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    /** With a limit for all of it: that of a request ends with the headers of the answer. */
    private HttpResponse<String> send(HttpRequest request)
            throws ExecutionException, TimeoutException, InterruptedException {
        CompletableFuture<HttpResponse<String>> response =
                http.sendAsync(request, HttpResponse.BodyHandlers.ofString());
        try {
            return response.get(TIMEOUT.toMillis(), TimeUnit.MILLISECONDS);
        } finally {
            response.cancel(true);
        }
    }

    private HttpRequest requestOf(State state) throws JsonProcessingException {
        HttpRequest.Builder request = HttpRequest.newBuilder(uri)
                .header("Content-Type", "application/json")
                .POST(HttpRequest.BodyPublishers.ofByteArray(json.writeValueAsBytes(description.heart(state))));
        if (token != null) {
            request.header("Authorization", "Bearer " + token);
        }
        return request.build();
    }
}
