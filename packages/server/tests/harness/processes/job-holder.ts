/** A process that takes a job and never ends it: `bun job-holder.ts <redis url> <prefix> <lease ms>`. */
import { openJobs } from '../../../src/app/jobs.ts'
import { systemClock } from '../../../src/base/clock.ts'
import { silentLog } from '../../../src/base/log.ts'
import { openRedisCluster } from '../../../src/engines/cluster/redis.ts'

const [url = '', prefix = '', leaseMs = ''] = process.argv.slice(2)
const leases = await openRedisCluster({ url, prefix, log: silentLog })
openJobs(
  [
    {
      name: 'held',
      intervalMs: 1000,
      run() {
        console.log('running')
        return new Promise(() => {})
      },
    },
  ],
  { leases, holder: 'one that dies', clock: systemClock, log: silentLog, leaseMs: Number(leaseMs), random: () => 0 },
)
