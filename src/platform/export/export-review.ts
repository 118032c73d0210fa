import type { ServiceObject } from '../../kube/objects.ts';
import type { AdmissionRequest, Verdict } from '../../reconcile/webhooks.ts';
import { exportSettingsOf } from './exported-service.ts';

/** Refuses an exported Service with faults. One that is stored with faults already may be changed in other fields. */
export function reviewService({ object, oldObject }: AdmissionRequest<ServiceObject>): Verdict<ServiceObject> {
  const known = (oldObject && exportSettingsOf(oldObject)?.faults) ?? [];
  const faults = (exportSettingsOf(object)?.faults ?? []).filter((fault) => !known.includes(fault));
  return faults.length === 0 ? { isAllowed: true } : { isAllowed: false, message: faults.join('; ') };
}
