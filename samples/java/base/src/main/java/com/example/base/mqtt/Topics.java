package com.example.base.mqtt;

import com.example.base.BaseProperties;
import java.util.Locale;

/** The topics of one base. */
record Topics(String prefix) {

    static Topics of(BaseProperties properties) {
        return new Topics("koupleless_" + properties.env().toLowerCase(Locale.ROOT) + "/" + properties.identity());
    }

    /** All commands; what the base publishes itself is one level further down. */
    String commands() {
        return prefix + "/+";
    }

    String commandOf(String topic) {
        return topic.substring(prefix.length() + 1);
    }

    /** What the base publishes: heart, queryBaseline and the types of answers. */
    String published(String type) {
        return prefix + "/base/" + type;
    }
}
