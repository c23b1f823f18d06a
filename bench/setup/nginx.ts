/** A private nginx that serves the files of a folder: the baseline of downloads. */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { openPrivateServer } from '../../scripts/servers/private-server.ts'
import { provideProgram } from '../../scripts/servers/programs.ts'
import { pinned, serverCore } from './proc.ts'
import type { BaselineProcess } from './processes.ts'

export interface Nginx extends BaselineProcess {
  readonly version: string
}

/** One process without a log, with `sendfile`. */
const configuration = (root: string, port: number): string => `
daemon off;
master_process off;
pid nginx.pid;
error_log stderr error;
events { worker_connections 1024; }
http {
  sendfile on;
  tcp_nopush on;
  access_log off;
  default_type application/octet-stream;
  keepalive_requests 1000000000;
  client_body_temp_path body;
  proxy_temp_path proxy;
  fastcgi_temp_path fastcgi;
  uwsgi_temp_path uwsgi;
  scgi_temp_path scgi;
  server {
    listen 127.0.0.1:${port};
    root "${root}";
  }
}
`

/** Serves the folder on the server's core; null where nginx is missing and cannot be installed. */
export async function startNginx(root: string): Promise<Nginx | null> {
  const program = provideProgram(['nginx'], 'nginx')
  if (program === null) return null
  const server = await openPrivateServer('nginx', ({ folder, port }) => {
    const path = join(folder, 'nginx.conf')
    writeFileSync(path, configuration(root, port))
    return {
      url: `http://127.0.0.1:${port}`,
      process: { command: [...pinned(serverCore), program, '-p', folder, '-e', 'stderr', '-c', path] },
      isReadyEarly: true,
    }
  })
  const { stderr } = Bun.spawnSync([program, '-v'])
  return {
    pid: Number(readFileSync(join(server.folder, 'nginx.pid'), 'utf8')),
    port: server.port,
    version: stderr.toString().match(/nginx\/([\d.]+)/)?.[1] ?? 'of an unknown version',
    stop: () => server.remove(),
  }
}
