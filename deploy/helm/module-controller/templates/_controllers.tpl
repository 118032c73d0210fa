{{- /* Made by `npm run manifests` from the definitions of the controllers. */ -}}
{{- define "module-controller.clusterRules" -}}
# NodeController: makes the Node of a base, keeps its labels and taints, deletes it when the base is dead.
# SharedInformer: watches (list only where an API server has no streaming lists).
- apiGroups: [""]
  resources: [nodes]
  verbs: [get, list, watch, create, patch, delete]
# NodeController: readiness, addresses, memory.
- apiGroups: [""]
  resources: [nodes/status]
  verbs: [patch]
# SharedInformer; BasePods lists those of an address; PodController deletes a Pod when its modules are
# uninstalled.
- apiGroups: [""]
  resources: [pods]
  verbs: [list, watch, delete]
# PodController: what the base reports.
- apiGroups: [""]
  resources: [pods/status]
  verbs: [patch]
# EventRecorder: Events about objects in any namespace.
- apiGroups: [""]
  resources: [events]
  verbs: [create, patch]
{{- end }}

{{- define "module-controller.rules.kube-node-lease" -}}
# NodeLeaseController and MembershipController: the Leases of Nodes and of replicas. SharedInformer: one watch
# for both.
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  verbs: [get, list, watch, create, patch, delete]
# FirstContacts (UNKNOWN_MODULE_POLICY=remove): which bases were met, and the modules that they had then.
- apiGroups: [""]
  resources: [configmaps]
  verbs: [get, create, patch]
{{- end }}

{{- define "module-platform.clusterRules" -}}
{{- if or (has "peer" .Values.platform.controllers) (has "rollout" .Values.platform.controllers) (has "export" .Values.platform.controllers) }}
# SharedInformer: the Nodes of bases.
- apiGroups: [""]
  resources: [nodes]
  verbs: [list, watch]
{{- end }}
{{- if or (has "peer" .Values.platform.controllers) (has "catalog" .Values.platform.controllers) }}
# SharedInformer: Deployments with the label `strategy: peer`.
# SharedInformer: what Modules have composed.
- apiGroups: [apps]
  resources: [deployments]
  verbs: [list, watch]
{{- end }}
{{- if has "peer" .Values.platform.controllers }}
# PeerController: their replicas, and nothing else of them.
- apiGroups: [apps]
  resources: [deployments/scale]
  verbs: [patch]
{{- end }}
{{- if or (has "peer" .Values.platform.controllers) (has "rollout" .Values.platform.controllers) (has "catalog" .Values.platform.controllers) (has "export" .Values.platform.controllers) }}
# EventRecorder: Events about objects in any namespace.
- apiGroups: [""]
  resources: [events]
  verbs: [create, patch]
{{- end }}
{{- if has "rollout" .Values.platform.controllers }}
# RolloutController: ModuleDeployments; it changes a template only to roll it back.
- apiGroups: [platform.koupleless.io]
  resources: [moduledeployments]
  verbs: [get, list, watch, patch]
{{- end }}
{{- if has "rollout" .Values.platform.controllers }}
# RolloutController: their status.
- apiGroups: [platform.koupleless.io]
  resources: [moduledeployments/status]
  verbs: [patch]
{{- end }}
{{- if has "rollout" .Values.platform.controllers }}
# RolloutController: their replicas, where these follow the number of bases.
- apiGroups: [platform.koupleless.io]
  resources: [moduledeployments/scale]
  verbs: [patch]
{{- end }}
{{- if has "rollout" .Values.platform.controllers }}
# PodStore: owner references of its Pods that hold up the deletion of their ModuleDeployment.
- apiGroups: [platform.koupleless.io]
  resources: [moduledeployments/finalizers]
  verbs: [update]
{{- end }}
{{- if has "rollout" .Values.platform.controllers }}
# PodStore: the Pods of ModuleDeployments.
- apiGroups: [""]
  resources: [pods]
  verbs: [get, list, watch, create, patch, delete]
{{- end }}
{{- if has "rollout" .Values.platform.controllers }}
# RevisionStore: their history.
- apiGroups: [apps]
  resources: [controllerrevisions]
  verbs: [get, list, watch, create, patch, delete]
{{- end }}
{{- if or (has "rollout" .Values.platform.controllers) (has "catalog" .Values.platform.controllers) (has "export" .Values.platform.controllers) }}
# installCrd: a CRD cannot be limited by name before it exists.
- apiGroups: [apiextensions.k8s.io]
  resources: [customresourcedefinitions]
  verbs: [create]
{{- end }}
{{- if has "rollout" .Values.platform.controllers }}
# installCrd: the CRDs of the platform.
- apiGroups: [apiextensions.k8s.io]
  resources: [customresourcedefinitions]
  resourceNames: [moduledeployments.platform.koupleless.io]
  verbs: [get, patch]
{{- end }}
{{- if has "catalog" .Values.platform.controllers }}
# SharedInformer: Modules. ModuleController and ReleaseController: whether one is as the watch shows it.
- apiGroups: [platform.koupleless.io]
  resources: [modules]
  verbs: [get, list, watch]
{{- end }}
{{- if has "catalog" .Values.platform.controllers }}
# ModuleController: their status.
- apiGroups: [platform.koupleless.io]
  resources: [modules/status]
  verbs: [patch]
{{- end }}
{{- if has "catalog" .Values.platform.controllers }}
# Composer: owner references of workloads and Services that hold up the deletion of their Module.
- apiGroups: [platform.koupleless.io]
  resources: [modules/finalizers]
  verbs: [update]
{{- end }}
{{- if has "catalog" .Values.platform.controllers }}
# SharedInformer: published releases.
- apiGroups: [platform.koupleless.io]
  resources: [modulereleases]
  verbs: [list, watch]
{{- end }}
{{- if has "catalog" .Values.platform.controllers }}
# ReleaseController: which releases are in use.
- apiGroups: [platform.koupleless.io]
  resources: [modulereleases/status]
  verbs: [patch]
{{- end }}
{{- if has "catalog" .Values.platform.controllers }}
# SharedInformer: limits and applications of namespaces.
- apiGroups: [platform.koupleless.io]
  resources: [platformconfigs]
  verbs: [list, watch]
{{- end }}
{{- if has "catalog" .Values.platform.controllers }}
# PlatformConfigController: applications of the Modules.
- apiGroups: [platform.koupleless.io]
  resources: [platformconfigs/status]
  verbs: [patch]
{{- end }}
{{- if has "catalog" .Values.platform.controllers }}
# SharedInformer: records of Pods that have gone.
- apiGroups: [platform.koupleless.io]
  resources: [moduleexitedrecords]
  verbs: [list, watch]
{{- end }}
{{- if has "catalog" .Values.platform.controllers }}
# SharedInformer: Pods of Modules. ExitedRecordController: whether one has gone, or has lost its labels.
- apiGroups: [""]
  resources: [pods]
  verbs: [get, list, watch]
{{- end }}
{{- if has "catalog" .Values.platform.controllers }}
# SharedInformer: configuration of Modules.
- apiGroups: [platform.koupleless.io]
  resources: [moduleconfigs]
  verbs: [list, watch]
{{- end }}
{{- if has "catalog" .Values.platform.controllers }}
# ConfigController: versions, and which one is in force.
- apiGroups: [platform.koupleless.io]
  resources: [moduleconfigs/status]
  verbs: [patch]
{{- end }}
{{- if has "catalog" .Values.platform.controllers }}
# ConfigStore: owner references of versions that hold up the deletion of their ModuleConfig.
- apiGroups: [platform.koupleless.io]
  resources: [moduleconfigs/finalizers]
  verbs: [update]
{{- end }}
{{- if or (has "catalog" .Values.platform.controllers) (has "export" .Values.platform.controllers) }}
# TokenAccess: who sends a token.
- apiGroups: [authentication.k8s.io]
  resources: [tokenreviews]
  verbs: [create]
{{- end }}
{{- if or (has "catalog" .Values.platform.controllers) (has "export" .Values.platform.controllers) }}
# TokenAccess: what the owner of a token may read.
- apiGroups: [authorization.k8s.io]
  resources: [subjectaccessreviews]
  verbs: [create]
{{- end }}
{{- if has "catalog" .Values.platform.controllers }}
# SharedInformer: what Modules have composed.
- apiGroups: [platform.koupleless.io]
  resources: [moduledeployments]
  verbs: [list, watch]
{{- end }}
{{- if has "catalog" .Values.platform.controllers }}
# SharedInformer: what Modules have composed.
- apiGroups: [apps]
  resources: [statefulsets]
  verbs: [list, watch]
{{- end }}
{{- if has "catalog" .Values.platform.controllers }}
# SharedInformer: what Modules have composed.
- apiGroups: [apps]
  resources: [daemonsets]
  verbs: [list, watch]
{{- end }}
{{- if has "catalog" .Values.platform.controllers }}
# SharedInformer: what Modules have composed.
- apiGroups: [""]
  resources: [services]
  verbs: [list, watch]
{{- end }}
{{- if has "catalog" .Values.platform.controllers }}
# installCrd: the CRDs of the platform.
- apiGroups: [apiextensions.k8s.io]
  resources: [customresourcedefinitions]
  resourceNames: [modules.platform.koupleless.io, modulereleases.platform.koupleless.io, moduleexitedrecords.platform.koupleless.io, platformconfigs.platform.koupleless.io, moduleconfigs.platform.koupleless.io]
  verbs: [get, patch]
{{- end }}
{{- if has "export" .Values.platform.controllers }}
# SharedInformer: the Pods of modules, which are the backends.
- apiGroups: [""]
  resources: [pods]
  verbs: [list, watch]
{{- end }}
{{- if has "export" .Values.platform.controllers }}
# ExportTable: which Services are exported. ExportController: whether one still is.
- apiGroups: [""]
  resources: [services]
  verbs: [get, list, watch]
{{- end }}
{{- if has "export" .Values.platform.controllers }}
# ExportTable: hosts that namespaces share with others.
- apiGroups: [platform.koupleless.io]
  resources: [moduletenancies]
  verbs: [list, watch]
{{- end }}
{{- if has "export" .Values.platform.controllers }}
# ExportController: owner references of ExportServices that hold up the deletion of their Service.
- apiGroups: [""]
  resources: [services/finalizers]
  verbs: [update]
{{- end }}
{{- if has "export" .Values.platform.controllers }}
# ExportController: ExportServices. It restores owner references and specs that somebody has changed.
- apiGroups: [platform.koupleless.io]
  resources: [exportservices]
  verbs: [list, watch, create, patch, delete]
{{- end }}
{{- if has "export" .Values.platform.controllers }}
# ExportController: what balancers get.
- apiGroups: [platform.koupleless.io]
  resources: [exportservices/status]
  verbs: [update]
{{- end }}
{{- if has "export" .Values.platform.controllers }}
# installCrd: the CRDs of the platform.
- apiGroups: [apiextensions.k8s.io]
  resources: [customresourcedefinitions]
  resourceNames: [exportservices.platform.koupleless.io]
  verbs: [get, patch]
{{- end }}
{{- if and (has "admission" .Values.platform.controllers) (not (index .Values.platform.config "WEBHOOK_CERT_PATH")) }}
# CertificateController: the CA in its own webhook configurations.
- apiGroups: [admissionregistration.k8s.io]
  resources: [mutatingwebhookconfigurations]
  resourceNames: [module-platform]
  verbs: [list, watch, patch]
{{- end }}
{{- if and (has "admission" .Values.platform.controllers) (not (index .Values.platform.config "WEBHOOK_CERT_PATH")) }}
# CertificateController: the CA in its own webhook configurations.
- apiGroups: [admissionregistration.k8s.io]
  resources: [validatingwebhookconfigurations]
  resourceNames: [module-platform]
  verbs: [list, watch, patch]
{{- end }}
{{- end }}

{{- define "module-platform-catalog.rules" -}}
{{- if has "catalog" .Values.platform.controllers }}
# ModuleController: their release, to roll it back.
- apiGroups: [platform.koupleless.io]
  resources: [modules]
  verbs: [patch]
{{- end }}
{{- if has "catalog" .Values.platform.controllers }}
# ReleaseController: it removes the oldest releases that nobody uses.
- apiGroups: [platform.koupleless.io]
  resources: [modulereleases]
  verbs: [patch]
{{- end }}
{{- if has "catalog" .Values.platform.controllers }}
# ExitedRecordController: the record of each Module. It deletes that of a former Module of the same name.
- apiGroups: [platform.koupleless.io]
  resources: [moduleexitedrecords]
  verbs: [create, delete]
{{- end }}
{{- if has "catalog" .Values.platform.controllers }}
# ExitedRecordController: which Pods have gone.
- apiGroups: [platform.koupleless.io]
  resources: [moduleexitedrecords/status]
  verbs: [patch]
{{- end }}
{{- if has "catalog" .Values.platform.controllers }}
# ConfigController: its content, and the finalizer that holds up its deletion while it is in use.
- apiGroups: [platform.koupleless.io]
  resources: [moduleconfigs]
  verbs: [get, patch]
{{- end }}
{{- if has "catalog" .Values.platform.controllers }}
# ConfigStore: the content of each version.
- apiGroups: [""]
  resources: [configmaps]
  verbs: [get, create, delete]
{{- end }}
{{- if has "catalog" .Values.platform.controllers }}
# ConfigController: versions that a Deployment may go back to, before it removes one.
- apiGroups: [apps]
  resources: [replicasets]
  verbs: [list]
{{- end }}
{{- if has "catalog" .Values.platform.controllers }}
# ConfigController: versions that other workloads may go back to, before it removes one.
- apiGroups: [apps]
  resources: [controllerrevisions]
  verbs: [list]
{{- end }}
{{- if has "catalog" .Values.platform.controllers }}
# Composer: what Modules compose.
- apiGroups: [platform.koupleless.io]
  resources: [moduledeployments]
  verbs: [get, create, patch, delete]
{{- end }}
{{- if has "catalog" .Values.platform.controllers }}
# Composer: what Modules compose.
- apiGroups: [apps]
  resources: [deployments]
  verbs: [get, create, patch, delete]
{{- end }}
{{- if has "catalog" .Values.platform.controllers }}
# Composer: what Modules compose.
- apiGroups: [apps]
  resources: [statefulsets]
  verbs: [get, create, patch, delete]
{{- end }}
{{- if has "catalog" .Values.platform.controllers }}
# Composer: what Modules compose.
- apiGroups: [apps]
  resources: [daemonsets]
  verbs: [get, create, patch, delete]
{{- end }}
{{- if has "catalog" .Values.platform.controllers }}
# Composer: what Modules compose.
- apiGroups: [""]
  resources: [services]
  verbs: [get, create, patch, delete]
{{- end }}
{{- end }}

{{- define "module-platform.ownRules" -}}
{{- if or (has "peer" .Values.platform.controllers) (has "rollout" .Values.platform.controllers) (has "catalog" .Values.platform.controllers) (has "export" .Values.platform.controllers) (has "admission" .Values.platform.controllers) }}
# Leader: which process acts. A Lease cannot be limited by name before it exists.
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  verbs: [get, create, patch]
{{- end }}
{{- if and (has "admission" .Values.platform.controllers) (not (index .Values.platform.config "WEBHOOK_CERT_PATH")) }}
# CertificateController: the certificates of the webhook server, in one Secret that the manifests make.
- apiGroups: [""]
  resources: [secrets]
  resourceNames: [module-platform-webhook]
  verbs: [list, watch, patch]
{{- end }}
{{- end }}

{{- define "module-controller.nodeKeys" -}}
- base.koupleless.io/cluster-name
- base.koupleless.io/host-name
- base.koupleless.io/name
- base.koupleless.io/stack
- base.koupleless.io/version
- beta.kubernetes.io/arch
- beta.kubernetes.io/os
- kubernetes.io/arch
- kubernetes.io/hostname
- kubernetes.io/os
- kubernetes.io/role
- node.alpha.kubernetes.io/ttl
- node.kubernetes.io/exclude-from-external-load-balancers
- platform.koupleless.io/arklet-port
- platform.koupleless.io/base-pod
- platform.koupleless.io/metaspace-used
- type
- virtual-kubelet.koupleless.io/component
- virtual-kubelet.koupleless.io/env
- vnode.koupleless.io/name
- vnode.koupleless.io/tunnel
- vnode.koupleless.io/version
{{- end }}

{{- define "module-controller.fixedNodeLabels" -}}
- ["base.koupleless.io/stack","java"]
- ["beta.kubernetes.io/os","linux"]
- ["kubernetes.io/os","linux"]
- ["kubernetes.io/role","agent"]
- ["node.kubernetes.io/exclude-from-external-load-balancers","true"]
- ["type","virtual-kubelet"]
- ["virtual-kubelet.koupleless.io/component","vnode"]
{{- end }}

{{- define "module-platform.crdNames" -}}
- exportservices.platform.koupleless.io
- moduleconfigs.platform.koupleless.io
- moduledeployments.platform.koupleless.io
- moduleexitedrecords.platform.koupleless.io
- modulereleases.platform.koupleless.io
- modules.platform.koupleless.io
- platformconfigs.platform.koupleless.io
{{- end }}

{{- define "module-platform.editRules" -}}
- apiGroups: [platform.koupleless.io]
  resources: [moduleconfigs, moduledeployments, moduledeployments/scale, modulereleases, modules, modules/scale, platformconfigs]
  verbs: [get, list, watch, create, update, patch, delete, deletecollection]
{{- end }}

{{- define "module-platform.viewRules" -}}
- apiGroups: [platform.koupleless.io]
  resources: [exportservices, moduleconfigs, moduledeployments, moduledeployments/scale, moduleexitedrecords, modulereleases, modules, modules/scale, moduletenancies, platformconfigs]
  verbs: [get, list, watch]
{{- end }}

{{- define "module-platform.webhooks.mutate" -}}
{{- if has "admission" .Values.platform.controllers }}
# Other Pods never come here. While the platform is away, complete Pods of modules start without it.
- name: pods.platform.koupleless.io
  admissionReviewVersions: [v1]
  sideEffects: None
  failurePolicy: Ignore
  matchPolicy: Equivalent
  reinvocationPolicy: IfNeeded
  timeoutSeconds: 5
  clientConfig:
    service: { name: module-platform-webhook, namespace: {{ .Release.Namespace }}, path: /mutate }
  objectSelector:
    matchLabels:
      virtual-kubelet.koupleless.io/component: module
  rules:
    - apiGroups: [""]
      apiVersions: [v1]
      resources: [pods]
      operations: [CREATE]
      scope: Namespaced
{{- end }}
{{- if has "admission" .Values.platform.controllers }}
# The controller of DaemonSets decides by the template which Nodes get a Pod.
- name: daemonsets.platform.koupleless.io
  admissionReviewVersions: [v1]
  sideEffects: None
  failurePolicy: Ignore
  matchPolicy: Equivalent
  reinvocationPolicy: IfNeeded
  timeoutSeconds: 5
  clientConfig:
    service: { name: module-platform-webhook, namespace: {{ .Release.Namespace }}, path: /mutate }
  objectSelector:
    matchLabels:
      virtual-kubelet.koupleless.io/component: module-deployment
  rules:
    - apiGroups: [apps]
      apiVersions: [v1]
      resources: [daemonsets]
      operations: [CREATE, UPDATE]
      scope: Namespaced
{{- end }}
{{- if has "admission" .Values.platform.controllers }}
# The number of Pods of a peer deployment follows from the bases that its template fits.
- name: peer-deployments.platform.koupleless.io
  admissionReviewVersions: [v1]
  sideEffects: None
  failurePolicy: Ignore
  matchPolicy: Equivalent
  reinvocationPolicy: IfNeeded
  timeoutSeconds: 5
  clientConfig:
    service: { name: module-platform-webhook, namespace: {{ .Release.Namespace }}, path: /mutate }
  objectSelector:
    matchLabels:
      virtual-kubelet.koupleless.io/strategy: peer
  rules:
    - apiGroups: [apps]
      apiVersions: [v1]
      resources: [deployments]
      operations: [CREATE, UPDATE]
      scope: Namespaced
{{- end }}
{{- end }}

{{- define "module-platform.webhooks.validate" -}}
{{- if has "rollout" .Values.platform.controllers }}
# While the platform is away, a ModuleDeployment can be deleted and scaled, but not changed.
- name: moduledeployments.platform.koupleless.io
  admissionReviewVersions: [v1]
  sideEffects: None
  failurePolicy: Fail
  matchPolicy: Equivalent
  timeoutSeconds: 5
  clientConfig:
    service: { name: module-platform-webhook, namespace: {{ .Release.Namespace }}, path: /validate }
  matchConditions:
    - name: specification-changes
      expression: "request.operation == 'CREATE' || object.spec != oldObject.spec"
    - name: is-not-being-deleted
      expression: "!has(object.metadata.deletionTimestamp)"
  rules:
    - apiGroups: [platform.koupleless.io]
      apiVersions: [v1alpha1]
      resources: [moduledeployments]
      operations: [CREATE, UPDATE]
      scope: Namespaced
{{- end }}
{{- if has "export" .Values.platform.controllers }}
# Other Services never come here. While the platform is away, its ExportService says what is wrong with one.
- name: services.platform.koupleless.io
  admissionReviewVersions: [v1]
  sideEffects: None
  failurePolicy: Ignore
  matchPolicy: Equivalent
  timeoutSeconds: 5
  clientConfig:
    service: { name: module-platform-webhook, namespace: {{ .Release.Namespace }}, path: /validate }
  matchConditions:
    {{- include "module-controller.exportConditions" . | nindent 4 }}
  rules:
    - apiGroups: [""]
      apiVersions: [v1]
      resources: [services]
      operations: [CREATE, UPDATE]
      scope: Namespaced
{{- end }}
{{- end }}
