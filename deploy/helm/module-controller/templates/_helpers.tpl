{{/* Name of the core's objects. */}}
{{- define "module-controller.name" -}}
{{ .Values.nameOverride | default "module-controller" }}
{{- end -}}

{{/* What Helm's tools expect on each object. The files for kustomize do not have them. */}}
{{- define "module-controller.labels" -}}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end -}}

{{- define "module-controller.image" -}}
{{ required "image.repository is not set: build the image, push it, and name it there" .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}

{{/* A variable as text: numbers of YAML files are floats here. */}}
{{- define "module-controller.text" -}}
{{ if kindIs "float64" . }}{{ int64 . }}{{ else }}{{ . }}{{ end }}
{{- end -}}

{{/* "true" if a variable of the core is on. Argument: [context, name]. */}}
{{- define "module-controller.isOn" -}}
{{- $value := index (index . 0).Values.config (index . 1) | toString | lower -}}
{{- if or (eq $value "true") (eq $value "1") }}true{{ end -}}
{{- end -}}

{{- define "module-controller.port" -}}
{{ include "module-controller.text" (index . 0 | default (index . 1)) }}
{{- end -}}

{{/* Combinations that the program refuses at its start. */}}
{{- define "module-controller.check" -}}
{{- $mqtt := include "module-controller.isOn" (list . "ENABLE_MQTT_TUNNEL") -}}
{{- $http := include "module-controller.isOn" (list . "ENABLE_HTTP_TUNNEL") -}}
{{- $cluster := include "module-controller.isOn" (list . "IS_CLUSTER") -}}
{{- if not (or $mqtt $http) -}}
{{- fail "no tunnel is on: set config.ENABLE_MQTT_TUNNEL=true and config.MQTT_BROKER, or config.ENABLE_HTTP_TUNNEL=true" -}}
{{- end -}}
{{- if and $mqtt (not .Values.config.MQTT_BROKER) -}}
{{- fail "config.MQTT_BROKER is required with config.ENABLE_MQTT_TUNNEL" -}}
{{- end -}}
{{- if and $http $cluster (not .Values.existingSecret) -}}
{{- fail "existingSecret is required with config.ENABLE_HTTP_TUNNEL and config.IS_CLUSTER: a Secret with MEMBER_TOKEN" -}}
{{- end -}}
{{- if and (not $cluster) (gt (int .Values.replicas) 1) -}}
{{- fail "replicas must be 1 without config.IS_CLUSTER: two would take the bases from each other" -}}
{{- end -}}
{{- end -}}

{{/* What every Pod needs: names and the API server. */}}
{{- define "module-controller.egress" -}}
{{- $egress := .Values.networkPolicy.egress -}}
- ports:
    - port: 53
      protocol: UDP
    - port: 53
      protocol: TCP
  to:
    {{- toYaml $egress.dns | nindent 4 }}
- ports:
    {{- range $egress.apiServerPorts }}
    - port: {{ include "module-controller.text" . }}
    {{- end }}
  to:
    {{- range $egress.apiServerNetworks }}
    - ipBlock:
        cidr: {{ . }}
    {{- end }}
{{- end -}}

{{- /* Which changes of Services the policy and the webhook judge: those of exported ones that are about the export. */ -}}
{{- define "module-controller.exportConditions" -}}
- name: is-exported
  expression: >-
    (has(object.metadata.labels) && 'BCSGROUP' in object.metadata.labels) ||
    (has(object.metadata.annotations) && 'platform.koupleless.io/export-groups' in object.metadata.annotations)
- name: export-changes
  expression: >-
    request.operation == 'CREATE' || object.spec != oldObject.spec ||
    [oldObject, object].exists(s,
    s.metadata.?labels.orValue({}).exists(k, k.startsWith('BCS') &&
    object.metadata.?labels[?k] != oldObject.metadata.?labels[?k]) ||
    s.metadata.?annotations.orValue({}).exists(k, k.startsWith('platform.koupleless.io/') &&
    object.metadata.?annotations[?k] != oldObject.metadata.?annotations[?k]))
{{- end }}
