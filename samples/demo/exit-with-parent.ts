/** Loaded into the controller by the demo: it then ends when the demo is gone, even by SIGKILL. */
process.once('disconnect', () => process.exit(1));
process.channel?.unref();
