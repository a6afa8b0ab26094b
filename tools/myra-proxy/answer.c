/* SPDX-License-Identifier: MIT */
/* The proxy's own answers. Their texts are fixed: nothing of a request is
 * ever repeated in them. */
#include "config.h"

#include <string.h>

#include "proxy.h"

struct text {
    int status;
    const char *text;
};

static const struct text texts[] = {
    {400, "The request could not be understood.\n"},
    {408, "The request did not arrive in time.\n"},
    {413, "The request body is too large.\n"},
    {414, "The request line is too long.\n"},
    {431, "The header fields are too large.\n"},
    {501, "The request asks for something that is not served here.\n"},
    {502, "The upstream server could not be reached or gave no valid "
          "answer.\n"},
    {503, "There is no room for the request now.\n"},
    {504, "The upstream server did not answer in time.\n"},
    {505, "This HTTP version is not served.\n"},
};

static const char *text_of(int status)
{
    size_t i;

    for (i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        if (texts[i].status == status)
            return texts[i].text;
    return "The request was refused.\n";
}

int answer_send(struct session *session, int status, int is_kept,
                int is_head, int version_minor)
{
    const char *text = text_of(status);
    const size_t text_len = strlen(text);
    struct myra_http_out out;
    uint8_t room[512];
    int err;

    myra_http_out_init(&out, room, sizeof(room) - text_len);
    myra_http_emit_status_line(&out, 1, status, NULL, 0);
    myra_http_emit_text(&out, "Date", worker_date(session->worker));
    myra_http_emit_text(&out, "Content-Type", "text/plain; charset=utf-8");
    myra_http_emit_length(&out, text_len);
    if (status == 503)
        myra_http_emit_text(&out, "Retry-After", "1");
    if (!is_kept)
        myra_http_emit_text(&out, "Connection", "close");
    else if (version_minor == 0)
        myra_http_emit_text(&out, "Connection", "keep-alive");
    myra_http_emit_end(&out);
    if (out.err)
        return out.err;
    if (!is_head) {
        memcpy(room + out.len, text, text_len);
        out.len += text_len;
    }
    err = myra_conn_send(session->conn, room, out.len);
    return err < 0 ? err : is_head ? 0 : (int)text_len;
}
