#include "database.h"

#include <endian.h>
#include <libpq-fe.h>

#include <array>
#include <cstring>
#include <stdexcept>

#include "options.h"

namespace pgwarp::bench
{

namespace
{

template <typename T>
void append_raw(std::string& out, T value)
{
    out.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

void append_int16(std::string& out, std::size_t value)
{
    append_raw(out, htobe16(static_cast<std::uint16_t>(value)));
}
void append_int32(std::string& out, std::size_t value)
{
    append_raw(out, htobe32(static_cast<std::uint32_t>(value)));
}

// The binary format of the type vector.
void append_vector(std::string& out, std::span<const float> vector)
{
    append_int16(out, vector.size());
    append_int16(out, 0);
    for (const float value : vector) {
        std::uint32_t bits;
        std::memcpy(&bits, &value, sizeof(bits));
        append_raw(out, htobe32(bits));
    }
}

}  // namespace

void Database::ResultDeleter::operator()(pg_result* result) const
{
    PQclear(result);
}
void Database::ConnectionDeleter::operator()(pg_conn* connection) const
{
    PQfinish(connection);
}

Database::Database(const std::string& connection_string) : connection_(PQconnectdb(connection_string.c_str()))
{
    if (PQstatus(connection_.get()) != CONNECTION_OK) throw std::runtime_error(PQerrorMessage(connection_.get()));
    run("SET client_min_messages = warning");
}

Database::Result Database::execute(const std::string& sql)
{
    Result result(PQexec(connection_.get(), sql.c_str()));
    const ExecStatusType status = PQresultStatus(result.get());
    if (status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK && status != PGRES_COPY_IN) {
        throw std::runtime_error(PQerrorMessage(connection_.get()) + ("in: " + sql));
    }
    return result;
}

void Database::run(const std::string& sql)
{
    execute(sql);
}

std::vector<std::string> Database::column(const std::string& sql)
{
    const Result result = execute(sql);
    std::vector<std::string> out;
    for (int i = 0; i < PQntuples(result.get()); ++i) out.emplace_back(PQgetvalue(result.get(), i, 0));
    return out;
}

std::vector<std::pair<int, int>> Database::pairs(const std::string& sql)
{
    const Result result = execute(sql);
    std::vector<std::pair<int, int>> out;
    for (int i = 0; i < PQntuples(result.get()); ++i) {
        out.emplace_back(std::stoi(PQgetvalue(result.get(), i, 0)), std::stoi(PQgetvalue(result.get(), i, 1)));
    }
    return out;
}

std::string Database::value(const std::string& sql)
{
    const std::vector<std::string> values = column(sql);
    if (values.size() != 1) throw std::runtime_error("not one row from: " + sql);
    return values[0];
}

void Database::prepare(const std::string& name, const std::string& sql)
{
    const Result result(PQprepare(connection_.get(), name.c_str(), sql.c_str(), 0, nullptr));
    if (PQresultStatus(result.get()) != PGRES_COMMAND_OK) throw std::runtime_error(PQerrorMessage(connection_.get()));
}

// The parameters stand one after the other in the buffer.
std::vector<std::int32_t> Database::execute_prepared(const std::string& name, std::span<const std::size_t> ends)
{
    std::vector<const char*> values;
    std::vector<int> lengths;
    std::size_t begin = 0;
    for (const std::size_t end : ends) {
        values.push_back(buffer_.data() + begin);
        lengths.push_back(static_cast<int>(end - begin));
        begin = end;
    }
    const std::vector<int> binary(ends.size(), 1);
    const Result result(PQexecPrepared(connection_.get(), name.c_str(), static_cast<int>(ends.size()), values.data(),
                                       lengths.data(), binary.data(), /* resultFormat */ 1));
    if (PQresultStatus(result.get()) != PGRES_TUPLES_OK) throw std::runtime_error(PQerrorMessage(connection_.get()));
    std::vector<std::int32_t> ids(static_cast<std::size_t>(PQntuples(result.get())));
    for (std::size_t i = 0; i < ids.size(); ++i) {
        std::uint32_t bits;
        std::memcpy(&bits, PQgetvalue(result.get(), static_cast<int>(i), 0), sizeof(bits));
        ids[i] = static_cast<std::int32_t>(be32toh(bits));
    }
    return ids;
}

std::vector<std::int32_t> Database::search(const std::string& name, std::span<const float> vector,
                                           std::span<const std::int32_t> numbers)
{
    buffer_.clear();
    append_vector(buffer_, vector);
    std::vector<std::size_t> ends{buffer_.size()};
    for (const std::int32_t number : numbers) {
        append_int32(buffer_, static_cast<std::size_t>(number));
        ends.push_back(buffer_.size());
    }
    return execute_prepared(name, ends);
}

std::vector<std::int32_t> Database::look_up(const std::string& name, std::int32_t id)
{
    buffer_.clear();
    append_int32(buffer_, static_cast<std::size_t>(id));
    return execute_prepared(name, std::array{buffer_.size()});
}

void Database::send_copy(const std::string& data)
{
    if (PQputCopyData(connection_.get(), data.data(), static_cast<int>(data.size())) != 1) {
        throw std::runtime_error(PQerrorMessage(connection_.get()));
    }
}

void Database::copy_rows(const std::string& table, const Matrix<float>& rows, std::size_t first, std::size_t count)
{
    constexpr std::size_t flush_bytes = 1 << 16;
    run("COPY " + table + " FROM STDIN (FORMAT binary)");
    std::string data("PGCOPY\n\377\r\n\0", 11);
    append_int32(data, 0);
    append_int32(data, 0);
    for (std::size_t i = first; i < first + count; ++i) {
        append_int16(data, 3);
        append_int32(data, 4);
        append_int32(data, i);
        append_int32(data, 4);
        append_int32(data, static_cast<std::size_t>(kind_of(i)));
        append_int32(data, 4 + 4 * rows.columns);
        append_vector(data, rows.row(i));
        if (data.size() < flush_bytes) continue;
        send_copy(data);
        data.clear();
    }
    append_int16(data, 0xffff);
    send_copy(data);
    if (PQputCopyEnd(connection_.get(), nullptr) != 1) throw std::runtime_error(PQerrorMessage(connection_.get()));
    while (const Result result{PQgetResult(connection_.get())}) {
        if (PQresultStatus(result.get()) != PGRES_COMMAND_OK)
            throw std::runtime_error(PQerrorMessage(connection_.get()));
    }
}

int Database::process_id() const
{
    return PQbackendPID(connection_.get());
}

}  // namespace pgwarp::bench
