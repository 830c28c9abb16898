// The handler of searches of many indexes in one request.
#include <algorithm>

#include "engine/mirror/row_checks.h"
#include "engine/search/spread_search.h"
#include "engine/server/handlers.h"

namespace pgwarp
{

namespace
{

constexpr double inline_indexes_cost = 2e6;  // float operations that an I/O thread spends itself
constexpr std::size_t most_inline_indexes = 16;

void check_targets(const SearchIndexesMessage& message)
{
    std::uint64_t bytes = sizeof(SearchIndexesReply) + message.targets.size() * sizeof(IndexAnswer) + 8;
    for (const IndexTarget& target : message.targets) {
        if (target.k < 1 || target.k > max_k) throw BadRequest("k is out of range");
        const std::uint64_t result_bytes = sizeof(Result) + (target.want_places != 0 ? sizeof(std::uint64_t) : 0);
        const std::uint64_t each = sizeof(std::uint32_t) + target.k * result_bytes;
        bytes += std::min(message.request.query_count * each, std::uint64_t{2} * max_payload);
    }
    if (bytes > max_payload) throw BadRequest("more results than one reply holds: ask for fewer indexes at a time");
}

// The searches of all targets. Only an index that is resident and new enough gets a mirror; the others get a status.
std::shared_ptr<SpreadSearch> prepare(Engine& engine, const SearchIndexesMessage& message)
{
    auto search = std::make_shared<SpreadSearch>();
    search->queries = OwnedRows(message.queries);
    search->count = message.request.query_count;
    search->targets.resize(message.targets.size());
    for (std::size_t i = 0; i < message.targets.size(); ++i) {
        const IndexTarget& asked = message.targets[i];
        SpreadTarget& target = search->targets[i];
        target.answer.status = SearchStatus::need_load;
        target.settings.earlier_count = asked.earlier_count;
        std::copy(std::begin(asked.earlier), std::end(asked.earlier), target.settings.earlier);
        std::shared_ptr<Mirror> mirror = engine.residency.find_resident(asked.key);
        if (!mirror) continue;
        mirror->touch();
        check_query_rows(mirror->shape(), message.queries);
        target.answer.status = mirror->snapshot()->status_for(asked.delta_end, asked.tombstone_version);
        if (target.answer.status != SearchStatus::answered) continue;
        target.settings.mirror = std::move(mirror);
        target.settings.k = asked.k;
        target.settings.effort = asked.effort;
        target.settings.parameters = message.request.settings;
        target.settings.want_places = asked.want_places != 0;
    }
    return search;
}

}  // namespace

void handle_search_indexes(IoThread& thread, const Request& request)
{
    const SearchIndexesMessage message = decode_search_indexes(request.payload);
    check_targets(message);
    if (inject_fault(thread, request, static_cast<Fault>(message.request.fault))) return;
    thread.start_spread_search(request, prepare(thread.engine(), message));
}

void IoThread::start_spread_search(const Request& request, std::shared_ptr<SpreadSearch> search)
{
    const std::uint64_t id = request.header.request_id;
    const auto received = request.received;
    if (search->targets.size() <= most_inline_indexes && search->cost() <= inline_indexes_cost) {
        run_spread_search(*search, nullptr, engine_.inline_pool);
        return answer_spread(request.connection, id, received, *search);
    }
    const ConnectionPtr connection = request.connection;
    const std::uint64_t number = ++connection->next_search;
    auto cancel = std::make_shared<QueuedCancel>();
    connection->searches.emplace(number, cancel);
    engine_.spread.post([this, connection, number, id, received, cancel, search] {
        std::optional<ErrorReply> error;
        try {
            const auto batch = std::make_shared<BatchCancel>();
            if (!cancel->enter(batch)) throw Cancelled();
            const BusyPoll::Work work(engine_.busy_poll, engine_.search_pool.threads());
            run_spread_search(*search, &batch->token(), engine_.search_pool);
        } catch (...) {
            error = describe_exception();
        }
        post([this, connection, number, id, received, search, error] {
            connection->searches.erase(number);
            if (error) return reply_error(connection, id, *error);
            answer_spread(connection, id, received, *search);
        });
    });
    expect_answer(*connection);
}

void IoThread::answer_spread(const ConnectionPtr& connection, std::uint64_t request_id, Clock::time_point received,
                             const SpreadSearch& search)
{
    for (const SpreadTarget& target : search.targets) {
        if (target.settings.mirror) engine_.index_delta(target.settings.mirror);
    }
    SearchIndexesReply head{};
    head.index_count = static_cast<std::uint32_t>(search.targets.size());
    head.query_count = static_cast<std::uint32_t>(search.count);
    const std::vector<std::byte> body = spread_body(search);
    const auto answered = std::find_if(search.targets.begin(), search.targets.end(), [](const SpreadTarget& target) {
        return target.answer.status == SearchStatus::answered;
    });
    if (answered != search.targets.end()) head.resolved = answered->resolved;
    const auto took = Clock::now() - received;
    head.engine_ns = nanoseconds(took);
    head.queue_ns = nanoseconds(took - search.dispatched);
    reply(connection, request_id, MessageType::reply, as_bytes(head), body);
    for (const SpreadTarget& target : search.targets) {
        if (target.answer.status != SearchStatus::answered) continue;
        target.settings.mirror->count_answer(search.count, head.queue_ns, head.engine_ns);
    }
}

}  // namespace pgwarp
