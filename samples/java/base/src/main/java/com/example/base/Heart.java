package com.example.base;

/** What a base says of itself, the same over HTTP and MQTT. */
public record Heart(BaseMetadata baseMetadata, String localIP, String localHostName, int port, State state) {

    public record BaseMetadata(String identity, String name, String version, String clusterName) {
    }

    /** DEACTIVATED is the goodbye: the controller takes the Node and its Pods off at once. */
    public enum State { ACTIVATED, DEACTIVATED }
}
