package com.example.base;

import com.example.base.Heart.BaseMetadata;
import com.example.base.Heart.State;
import org.springframework.stereotype.Component;

/** Who this base is. */
@Component
public class BaseDescription {

    private final BaseMetadata metadata;
    private final String localIp;
    private final String localHostName;
    private final int port;

    BaseDescription(BaseProperties properties, ArkletPort arkletPort) {
        this.metadata = new BaseMetadata(
                properties.identity(), properties.name(), properties.version(), properties.clusterName());
        this.localIp = properties.localIp();
        this.localHostName = LocalHost.name().orElse(properties.identity());
        this.port = arkletPort.number();
    }

    public BaseMetadata metadata() {
        return metadata;
    }

    public Heart heart(State state) {
        return new Heart(metadata, localIp, localHostName, port, state);
    }
}
