package com.example.base.mqtt;

/**
 * @param type the last level of the topic that it is published on
 * @param data something for Jackson
 */
record Answer(String type, Object data) {
}
