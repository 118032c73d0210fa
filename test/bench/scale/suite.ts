import type { Suite } from '../suite.ts';
import { ANNOUNCE } from './announce.ts';
import { APPLY } from './apply.ts';
import { BASE_DIES } from './base-dies.ts';
import { CHURN } from './churn.ts';
import { DELETE } from './delete.ts';
import { IDLE } from './idle.ts';
import { ensureKwok } from './kwok/program.ts';
import { LARGE } from './large.ts';
import { RESTART } from './restart.ts';
import { ROLL } from './roll.ts';
import { ScaleStage } from './stage.ts';
import { STOCK_API_SERVER, STOCK_MOSQUITTO } from './stock.ts';
import { SUBJECTS, subjectOf } from './subject.ts';

/** The order saves time: each case leaves what the next one begins with. */
export const SCALE: Suite<ScaleStage> = {
  name: 'scale',
  text: 'how near the controller comes to the least work that there is',
  defaults: { runs: 3, bases: 500, modules: 5 },
  subjects: SUBJECTS,
  notes: [
    'The floor counts with the number of writes in flight that was best in that run and case.',
    'kwok plays kubelets and installs nothing: its Pods lack the 50 ms of an install, and its Nodes are made by a helper.',
  ],
  prepare: async ({ subjects, onProgress }) => {
    if (subjects.includes('kwok')) await ensureKwok(onProgress);
  },
  steps: [
    [ANNOUNCE],
    [APPLY],
    [IDLE],
    [CHURN],
    [ROLL],
    [RESTART],
    [DELETE],
    [BASE_DIES],
    [STOCK_API_SERVER],
    [STOCK_MOSQUITTO],
    [LARGE],
  ],
  open: ({ subject, bases, modules = 1, onProgress }) =>
    new ScaleStage({ subject: subjectOf(subject), bases, modules, onProgress }),
};
