package com.example.base.mqtt;

import com.alibaba.fastjson.JSON;
import com.alipay.sofa.koupleless.arklet.core.ArkletComponentRegistry;
import com.alipay.sofa.koupleless.arklet.core.api.model.Response;
import com.alipay.sofa.koupleless.arklet.core.command.builtin.model.BizInfo;
import com.alipay.sofa.koupleless.arklet.core.command.meta.Output;
import com.fasterxml.jackson.annotation.JsonInclude;
import com.fasterxml.jackson.databind.util.RawValue;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.util.List;
import java.util.Map;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.springframework.stereotype.Component;

/** Executes the commands that come over MQTT. An install takes as long as the module's start. */
@Component
class ArkletCommands {

    private static final Logger logger = LoggerFactory.getLogger(ArkletCommands.class);

    boolean isOperation(String command) {
        return command.equals("installBiz") || command.equals("uninstallBiz");
    }

    boolean isQuestion(String command) {
        return command.equals("health") || command.equals("queryAllBiz");
    }

    Answer execute(String command, Map<String, Object> parameters) {
        return switch (command) {
            case "health" -> new Answer("health", asArkletSays(process(command, parameters)));
            case "queryAllBiz" -> new Answer("simpleBiz", modules());
            default -> new Answer("bizOperation", operation(command, parameters));
        };
    }

    private static List<SimpleBiz> modules() {
        @SuppressWarnings("unchecked")
        List<BizInfo> modules = (List<BizInfo>) process("queryAllBiz", Map.of()).getData();
        return modules.stream()
                .map(module -> new SimpleBiz(
                        module.getBizName(), module.getBizVersion(), module.getBizState().toString()))
                .toList();
    }

    private record SimpleBiz(String name, String version, String state) {
    }

    /** The names go with the answer: nothing else shows the controller which command it answers. */
    private static BizOperation operation(String command, Map<String, Object> parameters) {
        Object name = parameters.get("bizName");
        Object version = parameters.get("bizVersion");
        try {
            return new BizOperation(command, name, version, asArkletSays(process(command, parameters)));
        } catch (Throwable e) {
            // Throwable: a full metaspace has to be answered as well.
            logger.warn("{} of {}:{} failed: {}", command, name, version, messageOf(e));
            Failure failure = new Failure("FAILED", messageOf(e), new Failure("FAILED", stackTraceOf(e), null));
            return new BizOperation(command, name, version, failure);
        }
    }

    @JsonInclude(JsonInclude.Include.NON_NULL)
    private record BizOperation(String command, Object bizName, Object bizVersion, Object response) {
    }

    @JsonInclude(JsonInclude.Include.NON_NULL)
    private record Failure(String code, String message, Failure data) {
    }

    private static Response process(String command, Map<String, Object> parameters) {
        try {
            // Not kept in a field: the first use of the registry starts arklet, before the base is up.
            Output<?> output = ArkletComponentRegistry.getCommandServiceInstance().process(command, parameters);
            return Response.fromCommandOutput(output);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new IllegalStateException("the base goes down", e);
        }
    }

    /** With the serializer that arklet's classes are made for, so that the JSON is that of its HTTP answers. */
    private static RawValue asArkletSays(Response response) {
        return new RawValue(JSON.toJSONString(response));
    }

    private static String messageOf(Throwable e) {
        return e.getMessage() == null ? e.toString() : e.getMessage();
    }

    private static String stackTraceOf(Throwable e) {
        StringWriter text = new StringWriter();
        e.printStackTrace(new PrintWriter(text));
        return text.toString();
    }
}
