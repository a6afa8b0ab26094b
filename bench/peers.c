/* SPDX-License-Identifier: MIT */
/*
 * Starting and stopping proxies. Every one gets one worker, upstream
 * keep-alive without a limit that could close a connection in the run, and
 * no log unless all have one.
 */
#include "config.h"

#include "bench/peers.h"
#include "bench/proc.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <myra/alloc.h>

#define PATH_CAP 512
#define READY_LIMIT_NS UINT64_C(5000000000)
#define ENV_MAX 8
/* Below the range of ports that the system gives to clients, so that no
 * connection of the bench itself sits on a server's port. */
#define PORT_FIRST 20000
#define PORT_COUNT 12000

const char *const peer_names[PEER_COUNT] = {
    [PEER_MYRA_EPOLL] = "myra epoll", [PEER_MYRA_TOKEN] = "myra uring-token",
    [PEER_NGINX] = "nginx",           [PEER_HAPROXY] = "haproxy",
    [PEER_RELAY] = "byte relay",
};

static const char nginx_text[] =
    "%s"
    "worker_processes 1;\n"
    "worker_rlimit_nofile 20000;\n"
    "daemon off;\n"
    "pid %s/nginx.pid;\n"
    "error_log %s/nginx.err crit;\n"
    "events { worker_connections 16384; }\n"
    "http {\n"
    "  access_log %s;\n"
    "  keepalive_timeout 3600s;\n"
    "  keepalive_requests 1000000000;\n"
    "  client_body_temp_path %s/ngx_b;\n"
    "  proxy_temp_path %s/ngx_p;\n"
    "  fastcgi_temp_path %s/ngx_f;\n"
    "  uwsgi_temp_path %s/ngx_u;\n"
    "  scgi_temp_path %s/ngx_s;\n"
    "  upstream o {\n"
    "    server 127.0.0.1:%u;\n"
    "    keepalive 16384;\n"
    "    keepalive_requests 1000000000;\n"
    "    keepalive_timeout 3600s;\n"
    "  }\n"
    "  server {\n"
    "    listen 127.0.0.1:%u backlog=8192;\n"
    "    location / {\n"
    "      proxy_pass http://o;\n"
    "      proxy_http_version 1.1;\n"
    "      proxy_set_header Connection \"\";\n"
    "    }\n"
    "  }\n"
    "}\n";

/* The pool ratios keep idle upstream connections; by default they are closed
 * beyond a fifth of the descriptors. */
static const char haproxy_text[] =
    "global\n"
    "  maxconn 9500\n"
    "  nbthread 1\n"
    "  tune.bufsize 16384\n"
    "  tune.pool-low-fd-ratio 100\n"
    "  tune.pool-high-fd-ratio 100\n"
    "%s"
    "defaults\n"
    "  mode http\n"
    "  timeout connect 5s\n"
    "  timeout client 3600s\n"
    "  timeout server 3600s\n"
    "  timeout http-keep-alive 3600s\n"
    "  option http-keep-alive\n"
    "  http-reuse always\n"
    "%s"
    "frontend f\n"
    "  bind 127.0.0.1:%u\n"
    "  default_backend b\n"
    "backend b\n"
    "  server o 127.0.0.1:%u pool-max-conn -1 pool-purge-delay 3600s\n";

/* ---- Scratch and ports --------------------------------------------------- */

int peer_dir_open(char *dir, size_t cap)
{
    snprintf(dir, cap, "/tmp/myra-bench.XXXXXX");
    if (!mkdtemp(dir))
        return -errno;
    /* nginx's worker may run as another user. */
    return chmod(dir, 0755) < 0 ? -errno : 0;
}

/* Two levels: nginx makes folders, and puts none into them here. */
void peer_dir_close(const char *dir)
{
    DIR *const list = opendir(dir);
    struct dirent *entry;

    while (list && (entry = readdir(list))) {
        if (strcmp(entry->d_name, ".") == 0 ||
            strcmp(entry->d_name, "..") == 0)
            continue;
        if (unlinkat(dirfd(list), entry->d_name, 0) < 0)
            unlinkat(dirfd(list), entry->d_name, AT_REMOVEDIR);
    }
    if (list)
        closedir(list);
    rmdir(dir);
}

static struct sockaddr_in loopback(uint16_t port)
{
    const struct sockaddr_in addr = { .sin_family = AF_INET,
                                      .sin_port = htons(port),
                                      .sin_addr = { htonl(
                                          INADDR_LOOPBACK) } };

    return addr;
}

static uint16_t find_port(void)
{
    static uint32_t next;

    if (next == 0)
        next = (uint32_t)getpid() * 16;
    for (int i = 0; i < PORT_COUNT; i++) {
        const uint16_t port = (uint16_t)(PORT_FIRST + next++ % PORT_COUNT);
        const struct sockaddr_in addr = loopback(port);
        const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        const int is_free =
            fd >= 0 &&
            bind(fd, (const struct sockaddr *)&addr, sizeof(addr)) == 0;

        if (fd >= 0)
            close(fd);
        if (is_free)
            return port;
    }
    return 0;
}

static int takes_connections(uint16_t port)
{
    const struct sockaddr_in addr = loopback(port);
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const int is_open =
        fd >= 0 &&
        connect(fd, (const struct sockaddr *)&addr, sizeof(addr)) == 0;

    if (fd >= 0)
        close(fd);
    return is_open;
}

/* The first line that the program wrote to its standard error. */
static void read_reason(struct peer *peer, const char *err_path)
{
    char line[128] = "";
    FILE *const file = fopen(err_path, "r");

    if (file) {
        if (!fgets(line, sizeof(line), file))
            line[0] = '\0';
        fclose(file);
    }
    line[strcspn(line, "\n")] = '\0';
    snprintf(peer->why, sizeof(peer->why), "did not start%s%s",
             line[0] ? ": " : "", line);
}

static int wait_ready(struct peer *peer, const char *err_path)
{
    const uint64_t start_ns = myra_clock_ns();
    const struct timespec step = { .tv_nsec = 5000000 };

    while (proc_is_alive(peer->pid)) {
        if (takes_connections(peer->port))
            return 0;
        if (myra_clock_ns() - start_ns > READY_LIMIT_NS) {
            read_reason(peer, err_path);
            peer_stop(peer);
            return -ETIMEDOUT;
        }
        nanosleep(&step, NULL);
    }
    peer->pid = 0;
    read_reason(peer, err_path);
    return -ECHILD;
}

/* ---- Programs ------------------------------------------------------------ */

static int find_program(struct peer *peer, const char *name, char *path)
{
    const int err = proc_find(name, path, PATH_CAP);

    if (err < 0)
        snprintf(peer->why, sizeof(peer->why), "%s was not found", name);
    return err;
}

/* Starts argv with its output in files of dir, and waits for its port. */
static int launch(struct peer *peer, const struct peer_options *options,
                  char *const *argv, const char *const *env)
{
    char err_path[PATH_CAP];
    char out_path[PATH_CAP];
    struct proc_options proc;

    snprintf(err_path, sizeof(err_path), "%s/%u.err", options->dir,
             peer->port);
    snprintf(out_path, sizeof(out_path), "%s/%u.out", options->dir,
             peer->port);
    proc_options_init(&proc);
    proc.argv = argv;
    proc.env = env;
    proc.cpu = options->cpu;
    proc.err_path = err_path;
    proc.out_fd =
        open(out_path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    peer->pid = proc_start(&proc);
    if (proc.out_fd >= 0)
        close(proc.out_fd);
    if (peer->pid < 0) {
        const int err = (int)peer->pid;

        peer->pid = 0;
        return err;
    }
    return wait_ready(peer, err_path);
}

static int start_myra(struct peer *peer, const struct peer_options *options)
{
    char path[PATH_CAP];
    char listen_text[32];
    char to_text[32];
    char log_text[PATH_CAP] = "off";
    char max_text[16];
    static char words[][18] = { "--listen", "--to", "--threads", "1",
                                "--access-log", "--max-connections" };
    char *argv[] = { path,     words[0], listen_text, words[1],
                     to_text,  words[2], words[3],    words[4],
                     log_text, words[5], max_text,    NULL };
    const char *env[ENV_MAX] = { peer->kind == PEER_MYRA_EPOLL
                                     ? "MYRA_BACKEND=epoll"
                                     : "MYRA_BACKEND=uring-token" };
    int env_count = 1;

    if (find_program(peer, "myra-proxy", path) < 0)
        return -ENOENT;
    for (int i = 0; options->env && options->env[i]; i++)
        if (env_count + 1 < ENV_MAX)
            env[env_count++] = options->env[i];
    snprintf(listen_text, sizeof(listen_text), "127.0.0.1:%u", peer->port);
    snprintf(to_text, sizeof(to_text), "127.0.0.1:%u", options->origin_port);
    snprintf(max_text, sizeof(max_text), "%u", options->conns_max);
    if (options->has_log)
        snprintf(log_text, sizeof(log_text), "%s/myra.%u.log", options->dir,
                 peer->port);
    if (options->conns_max == 0)
        argv[9] = NULL;
    return launch(peer, options, argv, env);
}

static int write_file(const char *path, const char *text)
{
    FILE *const file = fopen(path, "w");

    if (!file)
        return -errno;
    fputs(text, file);
    return fclose(file) == 0 ? 0 : -EIO;
}

static int start_nginx(struct peer *peer, const struct peer_options *options)
{
    const char *const dir = options->dir;
    char path[PATH_CAP];
    char conf_path[PATH_CAP];
    char log_text[PATH_CAP] = "off";
    char text[4096];
    static char words[][4] = { "-p", "-c", "-e" };
    char dir_text[PATH_CAP];
    char early_text[PATH_CAP];
    char *argv[] = { path,     words[0], dir_text,   words[1], conf_path,
                     words[2], early_text, NULL };

    if (find_program(peer, "nginx", path) < 0)
        return -ENOENT;
    snprintf(dir_text, sizeof(dir_text), "%s", dir);
    snprintf(early_text, sizeof(early_text), "%s/nginx.err", dir);
    snprintf(conf_path, sizeof(conf_path), "%s/nginx.conf", dir);
    if (options->has_log)
        snprintf(log_text, sizeof(log_text), "%s/nginx.log", dir);
    snprintf(text, sizeof(text), nginx_text,
             geteuid() == 0 ? "user root;\n" : "", dir, dir, log_text, dir,
             dir, dir, dir, dir, options->origin_port, peer->port);
    const int err = write_file(conf_path, text);

    return err < 0 ? err : launch(peer, options, argv, NULL);
}

static int start_haproxy(struct peer *peer,
                         const struct peer_options *options)
{
    char path[PATH_CAP];
    char conf_path[PATH_CAP];
    char text[4096];
    static char words[][4] = { "-f" };
    char *argv[] = { path, words[0], conf_path, NULL };

    if (find_program(peer, "haproxy", path) < 0)
        return -ENOENT;
    snprintf(conf_path, sizeof(conf_path), "%s/haproxy.cfg", options->dir);
    snprintf(text, sizeof(text), haproxy_text,
             options->has_log ? "  log stdout format raw local0\n" : "",
             options->has_log ? "  log global\n  option httplog\n" : "",
             peer->port, options->origin_port);
    const int err = write_file(conf_path, text);

    return err < 0 ? err : launch(peer, options, argv, NULL);
}

static int start_relay(struct peer *peer, const struct peer_options *options)
{
    char port_text[16];
    char origin_text[16];
    const char *const args[] = { port_text, origin_text, NULL };
    double is_ready = 0;
    double unused;

    snprintf(port_text, sizeof(port_text), "%u", peer->port);
    snprintf(origin_text, sizeof(origin_text), "%u", options->origin_port);
    const int err =
        worker_start(&peer->relay, "relay", args, NULL, options->cpu);

    if (err < 0)
        return err;
    if (worker_ask(&peer->relay, &is_ready, &unused) != 2 || is_ready < 0) {
        worker_stop(&peer->relay);
        snprintf(peer->why, sizeof(peer->why), "the relay did not start");
        return -ECHILD;
    }
    peer->pid = peer->relay.pid;
    return 0;
}

int peer_start(struct peer *peer, enum peer_kind kind,
               const struct peer_options *options)
{
    memset(peer, 0, sizeof(*peer));
    peer->kind = kind;
    peer->port = find_port();
    snprintf(peer->why, sizeof(peer->why), "could not be started");
    switch (kind) {
    case PEER_NGINX:
        return start_nginx(peer, options);
    case PEER_HAPROXY:
        return start_haproxy(peer, options);
    case PEER_RELAY:
        return start_relay(peer, options);
    default:
        return start_myra(peer, options);
    }
}

void peer_stop(struct peer *peer)
{
    if (peer->pid <= 0)
        return;
    if (peer->kind == PEER_RELAY)
        worker_stop(&peer->relay);
    else
        proc_stop(peer->pid);
    peer->pid = 0;
}
