// Clients that search at once.
#pragma once

#include "database.h"
#include "measurement.h"
#include "methods.h"
#include "options.h"

namespace pgwarp::bench
{

const std::string& connection_of(const Options& options, Server server);

// A connection with the settings of a point. Where the planner would not take a method's index, settings force it to;
// `forced` says whether that was needed.
Database open_for(const Options& options, const Dataset& data, const Method& method, const Settings& settings,
                  bool* forced);

// Search for the first options.queries queries once, with one client, and give the mean recall back.
double measure_recall(const Options& options, const Dataset& data, const Method& method, const Settings& settings);

// Searches with this many clients for options.seconds.
Measurement measure_clients(const Options& options, const Dataset& data, const Method& method, const Settings& settings,
                            int clients);

// Search with one client, by the statement that open_for() prepared, and give the microseconds of each search back.
std::vector<double> search_for(double seconds, const Dataset& data, Database& database);

// Look rows up by primary key with one client.
Measurement measure_look_up(const Options& options, const Dataset& data, const Method& method);

}  // namespace pgwarp::bench
