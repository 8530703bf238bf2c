#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/log.h"
#include "s3/answer.h"
#include "s3/exchange.h"
#include "s3/call.h"
#include "s3/receive.h"
#include "s3/service.h"
#include "s3/verdict.h"

static const struct verdict done = { .kind = VERDICT_DONE };
static const struct verdict failed = { .kind = VERDICT_FAILED };
static const struct verdict corrected = { .kind = VERDICT_AGAIN,
    .retry = RETRY_NEVER };

static struct verdict
again(enum retry_kind retry, uint64_t asked)
{
	return (struct verdict){ .kind = VERDICT_AGAIN, .retry = retry,
	    .asked = asked };
}

static bool
is_one_of(const char *code, const char *const *codes)
{
	for (; *codes != NULL; codes++)
		if (strcmp(code, *codes) == 0)
			return true;
	return false;
}

/* How a transfer failed that brought no answer, or half of one. */
static struct verdict
judge_transfer(struct exchange *exchange, CURLcode code)
{
	struct s3_request *request = exchange->call->request;
	const char *text = exchange->curl_text[0] != '\0' ?
	    exchange->curl_text : curl_easy_strerror(code);

	error_set(&request->error, ERROR_FAILED, CAUSE_UNREACHABLE,
	    request->key, "%s failed: %s (attempt %u)",
	    call_method(exchange->call), text, request->attempts);
	switch (code) {
	case CURLE_OUT_OF_MEMORY:
		request->error.cause = CAUSE_MEMORY;
		return failed;
	case CURLE_PEER_FAILED_VERIFICATION:
	case CURLE_SSL_ISSUER_ERROR:
	case CURLE_SSL_CACERT_BADFILE:
	case CURLE_SSL_CERTPROBLEM:
		request->error.cause = CAUSE_DENIED;
		error_cure(&request->error, "check the address, the clock of "
		    "this machine and the CA bundle (--ca-bundle, "
		    "AWS_CA_BUNDLE)");
		return failed;
	case CURLE_UNSUPPORTED_PROTOCOL:
	case CURLE_URL_MALFORMAT:
		request->error.class = ERROR_USAGE;
		request->error.cause = CAUSE_OTHER;
		return failed;
	default:
		break;
	}
	error_cure(&request->error, "check the network and the endpoint");
	return again(RETRY_CONNECTION, 0);
}

static void
set_failure(struct exchange *exchange, int status,
    const struct answer_error *failure, enum error_cause cause)
{
	struct s3_request *request = exchange->call->request;
	const char *id = failure->request_id[0] != '\0' ?
	    failure->request_id : exchange->head.request_id;

	error_set(&request->error, ERROR_FAILED, cause, request->key,
	    "%s failed: %d %s%s%s (%s%s%sattempt %u)",
	    call_method(exchange->call), status,
	    failure->code[0] != '\0' ? failure->code : "without a code",
	    failure->message[0] != '\0' ? ": " : "", failure->message,
	    id[0] != '\0' ? "request id " : "", id, id[0] != '\0' ? ", " : "",
	    request->attempts);
}

/* The region of the bucket, when the answer says that it is another one. */
static bool
correct_region(struct exchange *exchange, int status,
    const struct answer_error *failure)
{
	static const char *const codes[] = { "PermanentRedirect",
	    "TemporaryRedirect", "Redirect", "AuthorizationHeaderMalformed",
	    "IllegalLocationConstraintException", NULL };
	struct call *call = exchange->call;
	const char *region = exchange->head.region[0] != '\0' ?
	    exchange->head.region : failure->region;
	bool asks = is_one_of(failure->code, codes) || status / 100 == 3 ||
	    (status == 400 && failure->code[0] == '\0');

	if (!asks || call->region_corrected || region[0] == '\0' ||
	    strcmp(region, exchange->region) == 0)
		return false;
	call->region_corrected = true;
	return service_set_region(exchange->service, region);
}

/* Signed with a clock that is not the server's. */
static bool
correct_clock(struct exchange *exchange, const struct answer_error *failure)
{
	struct call *call = exchange->call;
	time_t server = head_server_time(&exchange->head);

	if (strcmp(failure->code, "RequestTimeTooSkewed") != 0 ||
	    server == 0 || call->clock_corrections == 2 ||
	    llabs((long long)server - (long long)exchange->signed_at) < 60)
		return false;
	call->clock_corrections++;
	service_set_clock(exchange->service, server);
	return true;
}

static bool
renew_token(struct exchange *exchange, const struct answer_error *failure)
{
	static const char *const codes[] = { "ExpiredToken",
	    "ExpiredTokenException", "TokenRefreshRequired", NULL };
	struct call *call = exchange->call;

	if (!is_one_of(failure->code, codes) || call->token_renewed)
		return false;
	call->token_renewed = true;
	return credentials_refuse(exchange->service->credentials,
	    exchange->keys_number);
}

/* The server's own canonical request differs from this one. */
static void
tell_signature(const struct exchange *exchange)
{
	const char *name = "x-amz-security-token:";
	const char *text = buffer_text(&exchange->canonical);
	const char *token = strstr(text, name);
	const char *rest = token != NULL ? strchr(token, '\n') : NULL;

	if (token == NULL || rest == NULL)
		log_line(LOG_DEBUG, "signature", "signed: %s", text);
	else
		log_line(LOG_DEBUG, "signature", "signed: %.*s%s***%s",
		    (int)(token - text), text, name, rest);
}

static enum error_cause
cause_of(const struct call *call, int status, const char *code)
{
	static const char *const full[] = { "QuotaExceeded",
	    "InsufficientStorage", "XMinioStorageFull", NULL };

	if (strcmp(code, "NoSuchKey") == 0)
		return CAUSE_NOT_FOUND;
	if (strcmp(code, "NoSuchBucket") == 0)
		return CAUSE_DENIED;
	if (status == 412 && call->request->if_absent)
		return CAUSE_EXISTS;
	if (status == 507 || is_one_of(code, full))
		return CAUSE_NO_SPACE;
	if (status == 501 || status == 405)
		return CAUSE_UNSUPPORTED;
	if (status == 401 || status == 403)
		return CAUSE_DENIED;
	return CAUSE_OTHER;
}

static void
set_cure(const struct exchange *exchange, int status, const char *code)
{
	struct error *error = &exchange->call->request->error;
	static const char *const keys[] = { "SignatureDoesNotMatch",
	    "InvalidAccessKeyId", "InvalidToken", "ExpiredToken", NULL };

	if (strcmp(code, "NoSuchBucket") == 0)
		error_cure(error, "make the bucket \"%s\", or check its name "
		    "and the endpoint", exchange->service->endpoint.bucket);
	else if (is_one_of(code, keys))
		error_cure(error, "check the access key, the secret key and "
		    "the session token");
	else if (strcmp(code, "RequestTimeTooSkewed") == 0)
		error_cure(error, "set this machine's clock");
	else if (status == 403)
		error_cure(error, "check what these keys are allowed to do "
		    "with the bucket");
	else if (status / 100 == 3)
		error_cure(error, "redirects are not followed: check the "
		    "endpoint and the region");
}

static struct verdict
judge_refusal(struct exchange *exchange, int status,
    const struct answer_error *failure)
{
	static const char *const hashes[] = { "BadDigest",
	    "XAmzContentSHA256Mismatch", "XAmzContentChecksumMismatch", NULL };
	struct call *call = exchange->call;
	struct s3_request *request = call->request;

	set_failure(exchange, status, failure, cause_of(call, status,
	    failure->code));
	set_cure(exchange, status, failure->code);
	if (is_one_of(failure->code, hashes)) {
		request->error.cause = CAUSE_REFUSED;
		if (call->sent_again)
			return failed;
		call->sent_again = true;
		return corrected;
	}
	if (status == 404 && request->operation == S3_DELETE &&
	    request->error.cause == CAUSE_NOT_FOUND) {
		error_clear(&request->error);
		return done;
	}
	if (strcmp(failure->code, "SignatureDoesNotMatch") == 0)
		tell_signature(exchange);
	if (status == 416) {
		request->error.class = ERROR_DAMAGED;
		error_cure(&request->error, "the object ends before the "
		    "range that was asked for");
	}
	return failed;
}

static struct verdict
judge_status(struct exchange *exchange, int status,
    const struct answer_error *failure)
{
	struct call *call = exchange->call;
	enum retry_kind retry = retry_kind_of(status, failure->code);

	if (correct_region(exchange, status, failure) ||
	    correct_clock(exchange, failure) || renew_token(exchange, failure)) {
		set_failure(exchange, status, failure, CAUSE_DENIED);
		return corrected;
	}
	if (retry != RETRY_NEVER) {
		set_failure(exchange, status, failure, CAUSE_UNREACHABLE);
		return again(retry, exchange->head.retry_after);
	}
	/* The answer to HEAD has no body that says why. */
	if (call->request->operation == S3_HEAD && !call->probing) {
		call->probing = true;
		set_failure(exchange, status, failure, CAUSE_OTHER);
		return corrected;
	}
	/* An empty object has no first byte. */
	if (call->probing && status == 416) {
		call->request->size = 0;
		error_clear(&call->request->error);
		return done;
	}
	return judge_refusal(exchange, status, failure);
}

static struct verdict
damaged_answer(struct exchange *exchange)
{
	struct error *error = &exchange->call->request->error;

	error_prefix(error, "%s (attempt %u)", call_method(exchange->call),
	    exchange->call->request->attempts);
	error->cause = CAUSE_UNREACHABLE;
	return again(RETRY_FAULT, 0);
}

static struct verdict
judge_head(struct exchange *exchange)
{
	struct s3_request *request = exchange->call->request;
	const struct head *head = &exchange->head;

	if (head->has_total) {
		request->size = head->range_total;
	} else if (head->has_length && head->status == 200) {
		request->size = head->length;
	} else {
		error_set(&request->error, ERROR_FAILED, CAUSE_OTHER,
		    request->key, "the server does not say the size");
		return damaged_answer(exchange);
	}
	error_clear(&request->error);
	return done;
}

static struct verdict
judge_success(struct exchange *exchange)
{
	struct call *call = exchange->call;
	struct s3_request *request = call->request;
	const struct buffer *answer = &exchange->answer;
	struct answer_error failure;

	if (request->operation == S3_HEAD)
		return judge_head(exchange);
	if (request->operation == S3_GET && call->accept == NULL) {
		error_clear(&request->error);
		return receive_end(exchange, &request->error) == 0 ? done :
		    failed;
	}
	/* S3 can begin with 200 and fail then; that is a 500. */
	if (answer_read_error(answer->data, answer->length, &failure) == 0)
		return judge_status(exchange, 500, &failure);
	error_clear(&request->error);
	if (call->accept != NULL && call->accept(call->accept_context,
	    answer->data, answer->length, &request->error) != 0)
		return request->error.class == ERROR_DAMAGED ?
		    damaged_answer(exchange) : failed;
	return done;
}

/* The end of the connection came after the last byte that was wanted. */
static bool
has_everything(const struct call *call)
{
	return call->request->operation == S3_GET && call->accept == NULL &&
	    call->request->length > 0 &&
	    call->delivered == call->request->length;
}

struct verdict
verdict_of(struct exchange *exchange, CURLcode code)
{
	struct call *call = exchange->call;
	struct s3_request *request = call->request;
	int status = exchange->head.status;
	struct answer_error failure;

	if (status != 0) {
		request->status = status;
		request->server_time.tv_sec = head_server_time(&exchange->head);
		if (request->server_time.tv_sec != 0)
			service_see_clock(exchange->service,
			    request->server_time.tv_sec);
	}
	if (exchange->local.class != ERROR_NONE) {
		request->error = exchange->local;
		return failed;
	}
	if (exchange->silence != NULL) {
		error_set(&request->error, ERROR_FAILED, CAUSE_UNREACHABLE,
		    request->key, "%s failed: %s (attempt %u)",
		    call_method(call), exchange->silence, request->attempts);
		return again(RETRY_TIMEOUT, 0);
	}
	if (status / 100 == 2 && (code == CURLE_OK || has_everything(call)))
		return judge_success(exchange);
	if (status / 100 <= 2)
		return judge_transfer(exchange, code);
	answer_read_error(exchange->answer.data, exchange->answer.length,
	    &failure);
	return judge_status(exchange, status, &failure);
}
