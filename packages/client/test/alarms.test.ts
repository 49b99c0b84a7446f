import { describe, expect, it, vi } from "vitest";
import { type Alarm, Alarms } from "../src/alarms.ts";

class Bell implements Alarm {
  nextAlarm: Alarm | undefined;
  previousAlarm: Alarm | undefined;
  alarmList: Alarm["alarmList"];
  alarmAtMs = 0;
  readonly name: string;
  readonly rung: string[];

  constructor(name: string, rung: string[]) {
    this.name = name;
    this.rung = rung;
  }

  onAlarm(): void {
    this.rung.push(this.name);
  }
}

describe("Alarms", () => {
  it("ring in time, in order, unless they were cleared or set anew", () => {
    vi.useFakeTimers({ now: 0 });
    try {
      const alarms = new Alarms(() => Date.now());
      const rung: string[] = [];
      const bells = ["a", "b", "c", "d", "e"].map((name) => new Bell(name, rung));
      const [a, b, c, d, e] = bells as [Bell, Bell, Bell, Bell, Bell];
      for (const bell of [a, b, c]) alarms.set(bell, Date.now(), 1_000);
      vi.advanceTimersByTime(500);
      alarms.set(d, Date.now(), 1_000);
      alarms.set(e, Date.now(), 15);
      alarms.clear(b);
      alarms.clear(b);
      alarms.set(c, Date.now(), 1_000);
      vi.advanceTimersByTime(20);
      expect(rung).toEqual(["e"]);
      vi.advanceTimersByTime(479);
      expect(rung).toEqual(["e"]);
      vi.advanceTimersByTime(1);
      expect(rung).toEqual(["e", "a"]);
      vi.advanceTimersByTime(500);
      expect(rung).toEqual(["e", "a", "d", "c"]);
      vi.advanceTimersByTime(5_000);
      expect(vi.getTimerCount()).toBe(0);
    } finally {
      vi.useRealTimers();
    }
  });

  it("use one timer for any number of the same duration", () => {
    vi.useFakeTimers({ now: 0 });
    try {
      const alarms = new Alarms(() => Date.now());
      for (let count = 0; count < 1_000; count += 1) alarms.set(new Bell("x", []), Date.now(), 30_000);
      expect(vi.getTimerCount()).toBe(1);
    } finally {
      vi.useRealTimers();
    }
  });
});
