/** What `help` answers, word for word. */
export const HELP_DATA = [
  { desc: 'get all health info', id: 'health' },
  { desc: 'install one ark biz', id: 'batchInstallBiz' },
  { desc: 'query all ark biz(including master biz)', id: 'queryAllBiz' },
  { desc: 'list all supported commands', id: 'help' },
  { desc: 'uninstall one ark biz', id: 'uninstallBiz' },
  { desc: 'switch one ark biz', id: 'switchBiz' },
  { desc: 'install one ark biz', id: 'installBiz' },
  { desc: 'query ark biz ops', id: 'queryBizOps' },
] as const;
