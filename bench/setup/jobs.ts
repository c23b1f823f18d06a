/** A process that does jobs: each a JSON line on stdin, answered with one JSON line on stdout. */

/** What a job's line is answered with. */
export type JobAnswer<Result> = { readonly result: Result } | { readonly error: string }

/** Does jobs one after the other until stdin ends. */
export async function serveJobs<Job, Result>(run: (job: Job) => Promise<Result> | Result): Promise<void> {
  for await (const line of console) {
    const answer = await Promise.try(() => run(JSON.parse(line) as Job)).then(
      (result): JobAnswer<Result> => ({ result }),
      (error: Error): JobAnswer<Result> => ({ error: error.message }),
    )
    console.log(JSON.stringify(answer))
  }
}
