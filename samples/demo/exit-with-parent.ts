/**
 * Loaded into the controller by the demo: it then ends when the demo is gone, even by SIGKILL. Without handlers of the
 * exit: pino's writes what is left of the log, and repeats that for ever where nobody reads stdout any more.
 */
process.once('disconnect', () => process.kill(process.pid, 'SIGKILL'));
process.channel?.unref();
