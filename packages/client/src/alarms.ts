// Deadlines of many calls with few timers: calls with the same time to wait end in the order in which they began, so
// one linked list and one timer per duration do. Setting and clearing an alarm is a few pointer writes.

/** Something that wants to be woken. The links belong to {@link Alarms}. */
export interface Alarm {
  nextAlarm: Alarm | undefined;
  previousAlarm: Alarm | undefined;
  alarmList: AlarmList | undefined;
  alarmAtMs: number;
  onAlarm(): void;
}

/** All alarms of one duration, earliest first. */
export interface AlarmList {
  readonly durationMs: number;
  first: Alarm | undefined;
  last: Alarm | undefined;
}

/** Odd durations (what is left of a deadline) are rounded up to this, so that they share lists. */
const GRAIN_MS = 10;

/** The alarms of one fleet. Its timers do not keep the process alive: the request that waits has a socket which does. */
export class Alarms {
  readonly #lists = new Map<number, AlarmList>();
  readonly #now: () => number;

  constructor(now: () => number) {
    this.#now = now;
  }

  /** Wakes `alarm` in `durationMs`; replaces what was set. */
  set(alarm: Alarm, nowMs: number, durationMs: number): void {
    this.clear(alarm);
    const key = Math.ceil(durationMs / GRAIN_MS) * GRAIN_MS;
    let list = this.#lists.get(key);
    if (list === undefined) {
      list = { durationMs: key, first: undefined, last: undefined };
      this.#lists.set(key, list);
      this.#arm(list, key);
    }
    alarm.alarmList = list;
    alarm.alarmAtMs = nowMs + key;
    alarm.previousAlarm = list.last;
    if (list.last === undefined) list.first = alarm;
    else list.last.nextAlarm = alarm;
    list.last = alarm;
  }

  /** Forgets `alarm`. The list's timer stays and finds out: clearing it for each call would cost more. */
  clear(alarm: Alarm): void {
    const list = alarm.alarmList;
    if (list === undefined) return;
    if (alarm.previousAlarm === undefined) list.first = alarm.nextAlarm;
    else alarm.previousAlarm.nextAlarm = alarm.nextAlarm;
    if (alarm.nextAlarm === undefined) list.last = alarm.previousAlarm;
    else alarm.nextAlarm.previousAlarm = alarm.previousAlarm;
    alarm.alarmList = undefined;
    alarm.nextAlarm = undefined;
    alarm.previousAlarm = undefined;
  }

  #arm(list: AlarmList, waitMs: number): void {
    setTimeout(() => this.#ring(list), waitMs).unref();
  }

  #ring(list: AlarmList): void {
    const nowMs = this.#now();
    for (;;) {
      const alarm = list.first;
      if (alarm === undefined) {
        this.#lists.delete(list.durationMs);
        return;
      }
      // Node rounds timers to whole milliseconds and may be a fraction early.
      if (alarm.alarmAtMs > nowMs + 1) {
        this.#arm(list, alarm.alarmAtMs - nowMs);
        return;
      }
      this.clear(alarm);
      alarm.onAlarm();
    }
  }
}
