// The handler of searches: checks the request and the age of the mirror, and accepts the search for this round.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <new>

#include "engine/mirror/row_checks.h"
#include "engine/search/term_counts.h"
#include "engine/server/handlers.h"

namespace pgwarp
{

namespace
{

constexpr auto fault_sleep = std::chrono::seconds(10);
constexpr auto fault_hang = std::chrono::seconds(60);

SearchReply make_status(SearchStatus status, const MirrorSnapshot* snapshot)
{
    SearchReply reply{};
    reply.status = status;
    if (snapshot != nullptr) {
        for (std::size_t i = 0; i < delta_log_count; ++i) reply.have_delta_end[i] = snapshot->logs[i].end;
        reply.have_tombstone_version = snapshot->tombstone_version;
    }
    return reply;
}

void reply_status(IoThread& thread, const Request& request, SearchStatus status, const MirrorSnapshot* snapshot)
{
    SearchReply reply = make_status(status, snapshot);
    thread.answer_search(request.connection, request.header.request_id, reply, request.received, {});
}

void check_search(const SearchRequest& search)
{
    if (search.k < 1 || search.k > max_k) throw BadRequest("k is out of range");
    if (search.mode == SearchMode::continuation && std::isnan(search.after.distance))
        throw BadRequest("cursor is not a number");
}

// Refuses queries of another shape than the index has, and answers that exceed one reply.
void check_against(const Mirror& mirror, const MirrorSnapshot& snapshot, const SearchMessage& message)
{
    const SearchRequest& search = message.request;
    check_query_rows(mirror.shape(), message.queries);
    const char* fault = predicates_fault(message.predicates, mirror.shape().attribute_count);
    if (fault != nullptr) throw BadRequest(fault);
    const std::uint64_t most = std::min<std::uint64_t>(search.k, mirror.rows() + snapshot.delta_rows());
    const std::uint64_t result_bytes = sizeof(Result) + (search.want_places != 0 ? sizeof(std::uint64_t) : 0);
    const std::uint64_t bytes =
        sizeof(SearchReply) + search.query_count * (sizeof(std::uint32_t) + most * result_bytes) + 8;
    if (bytes > max_payload) throw BadRequest("more results than one reply holds: ask for fewer queries at a time");
}

// The body behind a SearchReply.
std::vector<std::uint64_t> count_body(const TermCounts& counts)
{
    std::vector<std::uint64_t> body = {counts.rows, counts.length};
    body.insert(body.end(), counts.of_terms.begin(), counts.of_terms.end());
    return body;
}

void accept_search(IoThread& thread, const Request& request, const SearchMessage& message,
                   std::shared_ptr<Mirror> mirror, std::shared_ptr<const TidBitmap> tids)
{
    const SearchRequest& search = message.request;
    RoundSearch accepted;
    accepted.connection = request.connection;
    accepted.request_id = request.header.request_id;
    accepted.received = request.received;
    accepted.settings.mirror = std::move(mirror);
    accepted.settings.k = search.k;
    accepted.settings.effort = search.effort;
    accepted.settings.earlier_count = search.earlier_count;
    std::copy(std::begin(search.earlier), std::end(search.earlier), accepted.settings.earlier);
    accepted.settings.parameters = search.settings;
    accepted.settings.mode = search.mode;
    accepted.settings.after = search.after;
    accepted.settings.want_places = search.want_places != 0;
    accepted.settings.tids = std::move(tids);
    accepted.queries = OwnedRows(message.queries);
    accepted.predicates = QueryPredicates(message.predicates, search.query_count);
    accepted.count = search.query_count;
    thread.add_search(std::move(accepted));
}

}  // namespace

bool inject_fault(IoThread& thread, const Request& request, Fault fault)
{
    if (fault == Fault::none) return false;
#ifdef PGWARP_FAULTS
    if (fault == Fault::crash) std::abort();
    if (fault == Fault::out_of_memory) throw std::bad_alloc();
    if (fault == Fault::hang) {
        thread.engine().device.hang(fault_hang);
        return false;
    }
    // Parked for the duration of the fault: no thread waits, and closing the connection ends it.
    if (request.timed_out && Clock::now() >= request.received + fault_sleep) return false;
    thread.park(request, thread.new_ticket(), request.received + fault_sleep);
    return true;
#else
    (void)thread;
    (void)request;
    throw BadRequest("the engine was built without fault points");
#endif
}

void handle_search(IoThread& thread, const Request& request)
{
    const SearchMessage message = decode_search(request.payload);
    const SearchRequest& search = message.request;
    check_search(search);
    if (inject_fault(thread, request, static_cast<Fault>(search.fault))) return;
    const Ticket ticket = thread.new_ticket();
    const Residency::Lookup found = thread.engine().residency.find(search.key, ticket);
    if (found.state == Residency::State::absent) return reply_status(thread, request, SearchStatus::need_load, nullptr);
    if (found.state == Residency::State::loading) {
        const auto deadline = request.received + std::chrono::milliseconds(search.load_wait_ms);
        if (Clock::now() < deadline) return thread.park(request, ticket, deadline);
        thread.engine().residency.forget(search.key, ticket);
        return reply_status(thread, request, SearchStatus::still_loading, nullptr);
    }
    found.mirror->touch();
    const auto snapshot = found.mirror->snapshot();
    check_against(*found.mirror, *snapshot, message);
    const SearchStatus status = snapshot->status_for(search.delta_end, search.tombstone_version);
    if (status != SearchStatus::answered) return reply_status(thread, request, status, snapshot.get());
    if (search.mode == SearchMode::term_counts)
        return thread.start_term_counts(request, found.mirror, snapshot, message.queries);
    std::shared_ptr<const TidBitmap> tids;
    if (search.tids != no_tids) {
        tids = request.connection->bitmaps.find(search.tids);
        if (tids == nullptr) return reply_status(thread, request, SearchStatus::need_tids, snapshot.get());
    }
    accept_search(thread, request, message, found.mirror, std::move(tids));
}

void IoThread::start_term_counts(const Request& request, std::shared_ptr<Mirror> mirror,
                                 std::shared_ptr<const MirrorSnapshot> snapshot, const RowView& query)
{
    if (mirror->shape().element != ElementType::bag) throw BadRequest("the rows of the index have no terms");
    const ConnectionPtr connection = request.connection;
    const std::uint64_t id = request.header.request_id;
    const auto answer = [this, connection, id, received = request.received, mirror,
                         snapshot](const TermCounts& counts) {
        SearchReply reply = make_status(SearchStatus::answered, snapshot.get());
        reply.query_count = 1;
        reply.delta_cost = static_cast<float>(mirror->delta_cost());
        const std::vector<std::uint64_t> body = count_body(counts);
        answer_search(connection, id, reply, received, std::as_bytes(std::span(body)));
    };
    if (cost_of_counts(*snapshot, query) <= inline_cost) return answer(count_terms(*mirror, *snapshot, query, nullptr));
    const std::uint64_t number = ++connection->next_search;
    auto cancel = std::make_shared<QueuedCancel>();
    connection->searches.emplace(number, cancel);
    auto own = std::make_shared<const OwnedRows>(query);
    engine_.spread.post([this, connection, number, id, cancel, own, answer, mirror, snapshot] {
        std::optional<ErrorReply> error;
        TermCounts counts;
        try {
            const auto batch = std::make_shared<BatchCancel>();
            if (!cancel->enter(batch)) throw Cancelled();
            const BusyPoll::Work work(engine_.busy_poll, 1);
            counts = count_terms(*mirror, *snapshot, own->view(), &batch->token());
        } catch (...) {
            error = describe_exception();
        }
        post([this, connection, number, id, answer, error, counts = std::move(counts)] {
            connection->searches.erase(number);
            error ? reply_error(connection, id, *error) : answer(counts);
        });
    });
    expect_answer(*connection);
}

}  // namespace pgwarp
