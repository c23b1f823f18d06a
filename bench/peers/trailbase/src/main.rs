//! TrailBase as a program: `trailbase-server FOLDER ADDRESS`. Its configuration and migrations are in the folder.
use std::path::PathBuf;
use trailbase::{DataDir, Server, ServerOptions};

#[global_allocator]
static GLOBAL: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    env_logger::init_from_env(env_logger::Env::new().default_filter_or("info"));
    let mut args = std::env::args().skip(1);
    let (Some(folder), Some(address)) = (args.next(), args.next()) else {
        return Err("usage: trailbase-server FOLDER ADDRESS".into());
    };
    let options = ServerOptions {
        data_dir: DataDir(PathBuf::from(folder)),
        address,
        admin_address: None,
        public_dir: None,
        geoip_db_path: None,
        log_responses: false,
        dev: false,
        demo: false,
        disable_auth_ui: false,
        cors_allowed_origins: vec!["*".to_string()],
        js_runtime_threads: None,
        tls_cert: None,
        tls_key: None,
    };
    Server::init(options).await?.serve().await
}
