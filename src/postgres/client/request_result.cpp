#include "postgres/client/request_result.h"

namespace pgwarp
{

const ErrorReply* refusal(const RequestResult& result)
{
    return reinterpret_cast<const ErrorReply*>(result.reply.payload);
}

static int sqlstate_of(ErrorCode code)
{
    switch (code) {
        case ErrorCode::bad_request:
            return ERRCODE_INVALID_PARAMETER_VALUE;
        case ErrorCode::cancelled:
            return ERRCODE_QUERY_CANCELED;
        case ErrorCode::out_of_memory:
        case ErrorCode::out_of_device_memory:
            return ERRCODE_OUT_OF_MEMORY;
        case ErrorCode::unknown_build:
            return ERRCODE_SYSTEM_ERROR;
        case ErrorCode::unknown_mirror:
            return ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE;
        case ErrorCode::other_version:
        case ErrorCode::shutting_down:
            return ERRCODE_CANNOT_CONNECT_NOW;
        case ErrorCode::internal:
            break;
    }
    return ERRCODE_INTERNAL_ERROR;
}

void raise_refusal(const RequestResult& result)
{
    ErrorReply error;
    memcpy(&error, refusal(result), sizeof(error));
    error.message[sizeof(error.message) - 1] = '\0';
    error.hint[sizeof(error.hint) - 1] = '\0';
    ereport(ERROR, (errcode(sqlstate_of(error.code)), errmsg("pgwarp-engine: %s", error.message),
                    error.hint[0] != '\0' ? errhint("%s", error.hint) : 0));
}

void raise_engine_lost()
{
    ereport(ERROR, (errcode(ERRCODE_SYSTEM_ERROR), errmsg("pgwarp-engine ended during a request of this session"),
                    errhint("The engine is started again by itself; the server's log tells why it ended. Repeat the "
                            "statement.")));
}

}  // namespace pgwarp
