/** A worker process: reads each job as a JSON line from stdin and writes its result as a JSON line to stdout. */

/** The result line of a job. */
export type JobAnswer<Result> = { readonly result: Result } | { readonly error: string }

/** Runs jobs one after the other until stdin ends. */
export async function serveJobs<Job, Result>(run: (job: Job) => Promise<Result> | Result): Promise<void> {
  for await (const line of console) {
    const answer = await Promise.try(() => run(JSON.parse(line) as Job)).then(
      (result): JobAnswer<Result> => ({ result }),
      (error: Error): JobAnswer<Result> => ({ error: error.message }),
    )
    console.log(JSON.stringify(answer))
  }
}
