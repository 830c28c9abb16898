// The last answer of each call of the plan, and the last answers of the statement.
#include "postgres/functions/bm25_answers.h"

extern "C" {
#include "access/xact.h"
#include "miscadmin.h"
#include "storage/proc.h"
#include "utils/datum.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
}

namespace pgwarp
{

namespace
{

struct Answer {
    Oid function;
    Oid user;
    Oid index;
    Datum words;
    double k1;
    double b;
    // of the snapshot
    TransactionId xmin;
    TransactionId xmax;
    uint32 running;
    CommandId command;
    PartsValue* query;  // null: there is no answer
};

// Of a statement that the client sent.
struct StatementAnswers {
    LocalTransactionId transaction;
    TimestampTz statement;
    MemoryContext context;  // in that of the transaction
    uint32 next;
    Answer answers[8];
};

StatementAnswers of_statement;

LocalTransactionId own_transaction()
{
#if PG_VERSION_NUM >= 170000
    return MyProc->vxid.lxid;
#else
    return MyProc->lxid;
#endif
}

// Forgets the answers of other statements.
void enter_statement()
{
    const LocalTransactionId transaction = own_transaction();
    const TimestampTz statement = GetCurrentStatementStartTimestamp();
    if (of_statement.transaction == transaction && of_statement.statement == statement) return;
    if (of_statement.transaction == transaction && of_statement.context != nullptr)
        MemoryContextDelete(of_statement.context);
    memset(&of_statement, 0, sizeof(of_statement));
    of_statement.context = AllocSetContextCreate(TopTransactionContext, "pgwarp bm25 answers", ALLOCSET_SMALL_SIZES);
    of_statement.transaction = transaction;
    of_statement.statement = statement;
}

// The answer of this call of the plan, which a cursor keeps for several statements.
Answer* answer_of_call(FunctionCallInfo fcinfo)
{
    if (fcinfo->flinfo->fn_extra == nullptr)
        fcinfo->flinfo->fn_extra = MemoryContextAllocZero(fcinfo->flinfo->fn_mcxt, sizeof(Answer));
    return static_cast<Answer*>(fcinfo->flinfo->fn_extra);
}

bool is_answer_to(const Answer& answer, FunctionCallInfo fcinfo)
{
    Snapshot now = GetActiveSnapshot();
    return answer.query != nullptr && answer.function == fcinfo->flinfo->fn_oid && answer.user == GetUserId() &&
           answer.index == PG_GETARG_OID(0) && answer.k1 == PG_GETARG_FLOAT8(2) && answer.b == PG_GETARG_FLOAT8(3) &&
           answer.xmin == now->xmin && answer.xmax == now->xmax && answer.running == now->xcnt &&
           answer.command == now->curcid && datumIsEqual(answer.words, PG_GETARG_DATUM(1), false, -1);
}

void replace_answer(Answer* answer, MemoryContext context, FunctionCallInfo fcinfo, const PartsValue* query)
{
    Snapshot now = GetActiveSnapshot();
    if (answer->query != nullptr) {
        pfree(answer->query);
        pfree(DatumGetPointer(answer->words));
    }
    answer->query = nullptr;
    MemoryContext outer = MemoryContextSwitchTo(context);
    answer->words = datumCopy(PG_GETARG_DATUM(1), false, -1);
    auto* kept = static_cast<PartsValue*>(palloc(VARSIZE(query)));
    MemoryContextSwitchTo(outer);
    memcpy(static_cast<void*>(kept), query, VARSIZE(query));
    answer->function = fcinfo->flinfo->fn_oid;
    answer->user = GetUserId();
    answer->index = PG_GETARG_OID(0);
    answer->k1 = PG_GETARG_FLOAT8(2);
    answer->b = PG_GETARG_FLOAT8(3);
    answer->xmin = now->xmin;
    answer->xmax = now->xmax;
    answer->running = now->xcnt;
    answer->command = now->curcid;
    answer->query = kept;
}

}  // namespace

const PartsValue* find_answer(FunctionCallInfo fcinfo)
{
    Answer* own = answer_of_call(fcinfo);
    if (is_answer_to(*own, fcinfo)) return own->query;
    enter_statement();
    for (const Answer& answer : of_statement.answers) {
        if (!is_answer_to(answer, fcinfo)) continue;
        replace_answer(own, fcinfo->flinfo->fn_mcxt, fcinfo, answer.query);
        return own->query;
    }
    return nullptr;
}

const PartsValue* keep_answer(FunctionCallInfo fcinfo, const PartsValue* query)
{
    enter_statement();
    Answer* shared = &of_statement.answers[of_statement.next++ % lengthof(of_statement.answers)];
    replace_answer(shared, of_statement.context, fcinfo, query);
    Answer* own = answer_of_call(fcinfo);
    replace_answer(own, fcinfo->flinfo->fn_mcxt, fcinfo, query);
    return own->query;
}

}  // namespace pgwarp
