/** The benchmarked configuration, without the request log. */
import config from '../../plinth.config.ts'

export default { ...config, analytics: { requestLog: false } }
