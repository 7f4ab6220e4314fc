import { codeOf } from "@holdfast/contracts/client";

/** Undefined instead of the error `not_found`. */
export async function ifFound<T>(call: Promise<T>): Promise<T | undefined> {
  try {
    return await call;
  } catch (error) {
    if (codeOf(error) === "not_found") return undefined;
    throw error;
  }
}
