import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';

const PREFIX = 'module_controller_';
/** A timer of the default 10 ms would take 0.7 % of a core by itself: a sixth of what 500 VNodes at rest take. */
const LOOP_LAG_RESOLUTION_MS = 100;

/** Every metric of the controller, in one place; series with known labels start at 0, so that absence is visible. */
export function createMetrics() {
  const registry = new Registry();
  const registers = [registry];
  const counter = <L extends string>(name: string, help: string, labelNames: readonly L[] = []): Counter<L> =>
    new Counter({ name, help, labelNames, registers });
  const gauge = <L extends string>(name: string, help: string, labelNames: readonly L[] = []): Gauge<L> =>
    new Gauge({ name, help, labelNames, registers });
  const histogram = <L extends string>(name: string, help: string, buckets: number[], labelNames: readonly L[] = []) =>
    new Histogram({ name, help, buckets, labelNames, registers });
  const requestSeconds = [0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];
  const queueSeconds = [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 60];

  const metrics = {
    registry,
    /** Adds the `process_*` and `nodejs_*` series; once per process. */
    collectProcessMetrics: (): void =>
      collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: LOOP_LAG_RESOLUTION_MS }),

    restRequests: counter('rest_client_requests_total', 'Requests to the API server.', ['method', 'code']),
    restRequestSeconds: histogram(
      'rest_client_request_duration_seconds',
      'Time from sending a request to the API server to its complete answer.',
      requestSeconds,
      ['verb'],
    ),
    restRetries: counter(
      'rest_client_request_retries_total',
      'Requests sent again after 429, after 503 with Retry-After, or after a cut connection.',
      ['verb'],
    ),
    restLimit: gauge(
      'rest_client_requests_limit',
      'Limit of concurrent requests to the API server, without Leases and watches; below 64 while renewals of Leases are late.',
    ),
    informerObjects: gauge(`${PREFIX}informer_objects`, 'Objects in an informer cache.', ['kind']),
    informerRelists: counter(`${PREFIX}informer_relists_total`, 'Lists that an informer had to repeat.', [
      'kind',
      'reason',
    ]),
    informerLastEventAge: gauge(
      `${PREFIX}watch_last_event_age_seconds`,
      'Age of the last event or bookmark of a watch.',
      ['kind'],
    ),
    informerParseErrors: counter(`${PREFIX}informer_parse_errors_total`, 'Watch lines that could not be read.', [
      'kind',
    ]),
    informerHandlerErrors: counter(
      `${PREFIX}informer_handler_errors_total`,
      'Exceptions thrown by handlers of an informer.',
      ['kind'],
    ),

    queueDepth: gauge('workqueue_depth', 'Keys that wait in a queue.', ['name']),
    queueAdds: counter('workqueue_adds_total', 'Keys added to a queue.', ['name']),
    queueRetries: counter('workqueue_retries_total', 'Keys added again after an error.', ['name']),
    queueSeconds: histogram('workqueue_queue_duration_seconds', 'Time a key waits in a queue.', queueSeconds, ['name']),
    queueWorkSeconds: histogram('workqueue_work_duration_seconds', 'Time one sync takes.', queueSeconds, ['name']),

    certificateReloads: counter(`${PREFIX}certificate_reloads_total`, 'Certificate reloads of a server, by result.', [
      'server',
      'result',
    ]),
    connectionsRefused: counter(
      `${PREFIX}connections_refused_total`,
      'Connections that a server closed at once, because it had too many of one source (Source) or in all (Total).',
      ['server', 'reason'],
    ),
    leading: gauge('leader_election_master_status', 'Whether this process leads, by Lease: 1 or 0.', ['name']),
    reconciles: counter(`${PREFIX}reconciles_total`, 'Reconciles of a controller, by result.', [
      'controller',
      'result',
    ]),
    admissionReviews: counter(
      `${PREFIX}admission_reviews_total`,
      'Admission reviews that the webhook answered, by result.',
      ['resource', 'operation', 'result'],
    ),
    webhookCertificateEnd: gauge(
      `${PREFIX}webhook_certificate_not_after_seconds`,
      'Expiry time of the certificate of the webhook server, in seconds since 1970.',
    ),
    exportedServices: gauge(`${PREFIX}exported_services`, 'Services that are exported to load balancers.'),
    exportViewSeconds: histogram(
      `${PREFIX}export_view_seconds`,
      'Time from the event of a Pod, Service or Node until the feed shows it.',
      requestSeconds,
    ),
    exportWrites: counter(`${PREFIX}export_writes_total`, 'Statuses of ExportServices that were written.'),
    exportRequests: counter(
      `${PREFIX}export_requests_total`,
      'Requests to the feed of load balancers, by status code.',
      ['code'],
    ),
    catalogRequests: counter(
      `${PREFIX}catalog_requests_total`,
      'Requests to `/resolve` and `/config`, by status code.',
      ['path', 'code'],
    ),
    exportWatches: gauge(`${PREFIX}export_watches`, 'Load balancers that watch the feed.'),
    events: counter(`${PREFIX}events_total`, 'Kubernetes Events, by result.', ['result']),
    tunnelMessages: counter(`${PREFIX}tunnel_messages_total`, 'Messages from bases.', ['tunnel', 'type']),
    tunnelInvalidMessages: counter(`${PREFIX}tunnel_invalid_messages_total`, 'Messages refused.', ['tunnel', 'code']),
    intakeRefused: counter(
      `${PREFIX}intake_refused_total`,
      'Messages and connections refused by a limit before they were read.',
      ['tunnel', 'reason'],
    ),
    tunnelRetainedMessages: counter(
      `${PREFIX}tunnel_retained_messages_total`,
      'Retained messages ignored because they may be old.',
      ['tunnel'],
    ),
    tunnelCommands: counter(`${PREFIX}tunnel_commands_total`, 'Commands to bases.', ['tunnel', 'command', 'result']),
    tunnelUp: gauge(`${PREFIX}tunnel_up`, 'Whether the link of a tunnel is up.', ['tunnel']),
    memberMessages: counter(
      `${PREFIX}member_messages_total`,
      'Messages of bases over HTTP that replicas pass on, counted once for each receiving replica.',
      ['direction'],
    ),
    memberRequests: counter(
      `${PREFIX}member_requests_total`,
      'Requests to other replicas that carry messages of bases.',
      ['result'],
    ),
    tunnelReconnects: counter(`${PREFIX}tunnel_reconnects_total`, 'Reconnects of a tunnel.', ['tunnel']),

    vnodes: gauge(`${PREFIX}vnodes`, 'VNodes, by the state of their base.', ['state']),
    livenessFrozen: gauge(
      `${PREFIX}liveness_frozen`,
      '1 while no base of the tunnel is judged, because the link is not proven.',
      ['tunnel'],
    ),
    unprovenBases: gauge(
      `${PREFIX}unproven_bases`,
      'Bases that have to answer a question before they get a Node (NEW_BASES_PER_MINUTE).',
    ),
    newBasesRefused: counter(
      `${PREFIX}new_bases_refused_total`,
      'Heartbeats of new bases that created no Node, by reason.',
      ['reason'],
    ),
    unroutableBases: counter(
      `${PREFIX}unroutable_base_addresses_total`,
      'Bases whose address no Service can use, or is in no network of bases.',
    ),
    nodeNameConflicts: counter(
      `${PREFIX}node_name_conflicts_total`,
      'Bases refused because their Node exists and does not belong to this controller and ENV.',
    ),
    podStatusWrites: counter(`${PREFIX}pod_status_writes_total`, 'Writes of pods/status.', ['result']),
    nodeStatusWrites: counter(`${PREFIX}node_status_writes_total`, 'Writes of nodes/status.', ['result']),
    podDeletes: counter(`${PREFIX}pod_deletes_total`, 'Pods deleted with a grace period of 0.', ['reason']),
    unknownModules: gauge(`${PREFIX}unknown_modules`, 'Modules on bases that no Pod asks for.'),
    preexistingModules: gauge(
      `${PREFIX}preexisting_modules`,
      'Modules that bases had when this ENV first met them, that no Pod has asked for since and that are kept.',
    ),
    unknownModulesRemoved: counter(
      `${PREFIX}unknown_modules_removed_total`,
      'Modules uninstalled because no Pod asks for them.',
    ),
    refusedBases: counter(
      `${PREFIX}refused_bases_total`,
      'Heartbeats refused because another base has the identity, over another tunnel or at another address.',
      ['tunnel'],
    ),
    skippedLists: counter(
      `${PREFIX}skipped_lists_total`,
      'Module lists that were ignored: more than one a second (rate), or more than 4,000 modules (room).',
      ['reason'],
    ),
    moduleOperations: counter(`${PREFIX}module_operations_total`, 'Finished installs, uninstalls and switches.', [
      'command',
      'result',
    ]),
    moduleOperationSeconds: histogram(
      `${PREFIX}module_operation_duration_seconds`,
      'Time from a command to its end.',
      [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300],
      ['command'],
    ),
    leaseRenewals: counter(`${PREFIX}node_lease_renew_total`, 'Renewals of node leases.', ['result']),
    leaseClaims: counter(`${PREFIX}lease_claims_total`, 'Attempts to create or take over a node lease.', ['result']),
    leaseTakeovers: counter(`${PREFIX}lease_takeovers_total`, 'VNodes that this replica started to lead, by reason.', [
      'reason',
    ]),
    leaseLosses: counter(`${PREFIX}lease_losses_total`, 'VNodes that this replica stopped leading, by reason.', [
      'reason',
    ]),
    leaseHandOvers: counter(`${PREFIX}lease_hand_overs_total`, 'Leases of Nodes handed over to another replica.', [
      'reason',
    ]),
    leasesHeld: gauge(`${PREFIX}leases_held`, 'VNodes that this replica leads.'),
    leasesKnown: gauge(`${PREFIX}leases_known`, 'VNodes that this replica knows, led or followed.'),
    workloadLevel: gauge(`${PREFIX}workload_level`, 'Workload level of this replica (WORKLOAD_MAX_LEVEL).'),
    members: gauge(`${PREFIX}members`, 'Live replicas of this ENV, this one among them.'),
    memberRenewals: counter(`${PREFIX}membership_renewals_total`, 'Renewals of this replica’s membership lease.', [
      'result',
    ]),
    fenced: gauge(
      `${PREFIX}fenced`,
      '1 while this replica may not lead any VNode because its membership is not renewed.',
    ),
    fences: counter(`${PREFIX}fences_total`, 'Times that this replica was fenced and stopped leading all VNodes.'),
    clientIdConflicts: counter(
      `${PREFIX}client_id_conflicts_total`,
      'Times that another live process had the same CLIENT_ID.',
    ),
    foreignLeases: counter(
      `${PREFIX}foreign_leases_total`,
      'Leases with the controller’s labels whose name or namespace is not the controller’s; they are ignored.',
    ),
  };
  for (const result of ['ok', 'error']) {
    metrics.podStatusWrites.inc({ result }, 0);
    metrics.nodeStatusWrites.inc({ result }, 0);
    metrics.leaseRenewals.inc({ result }, 0);
    metrics.memberRenewals.inc({ result }, 0);
    metrics.memberRequests.inc({ result }, 0);
  }
  for (const result of ['ok', 'lost', 'error']) metrics.leaseClaims.inc({ result }, 0);
  for (const reason of ['rate', 'room']) metrics.skippedLists.inc({ reason }, 0);
  for (const direction of ['sent', 'received', 'dropped']) metrics.memberMessages.inc({ direction }, 0);
  for (const reason of ['Uninstalled', 'BaseDead']) metrics.podDeletes.inc({ reason }, 0);
  for (const command of ['install', 'uninstall', 'switch']) {
    for (const result of ['done', 'failed', 'timeout']) metrics.moduleOperations.inc({ command, result }, 0);
  }
  return metrics;
}

export type Metrics = ReturnType<typeof createMetrics>;
